"""Following an engine: a real socket on one side, a real pipe to the window on the other."""

import asyncio
import os

import pytest

from waggle.engine import control, following
from waggle.engine.desk import Desk
from waggle.engine.stdio import Writer
from waggle.engine.teller import Teller
from waggle.paths import Home
from waggle.protocol import events, wire
from waggle.protocol.state import Snapshot, State
from waggle.rl.batch import nothing


async def obey(command):
    return (events.CommandDone(id=command.id),)


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "h").prepare()


@pytest.fixture
async def teller(home):
    """What the engine says that runs in this folder."""
    made = Teller(home.events, service=True)
    server = await control.serve(home, obey, following.told_to(made, Desk()))
    yield made
    server.close()
    made.close()


@pytest.fixture
def window():
    """What a window reads, and who writes there."""
    reading, writing = os.pipe()
    writer = Writer(writing)
    with os.fdopen(reading, "rb", buffering=0) as ours:
        yield ours, writer
    writer.close()
    os.close(writing)


async def test_who_follows_for_a_window_that_reads_no_more_and_dies_leaves_too(home, teller, window):
    reads, writer = window
    desk = Desk()
    followed = asyncio.create_task(following.follow(home, desk, writer, overruled=False))
    async with asyncio.timeout(20):
        while writer.waiting() <= following.MOST_AHEAD:
            teller.tell(events.Warned(title="x" * 4000, advice=""))
            await asyncio.sleep(0)
        for _ in range(2 * following.MOST_AHEAD):  # are still on their way then
            teller.tell(events.Warned(title="x" * 4000, advice=""))
        reads.close()
        desk.stop()
        assert await followed


async def test_half_a_line_of_an_engine_that_was_killed_is_not_passed_on(home, window):
    def killed(way):
        way.write(wire.line(Snapshot(state=State(service=True))) + b'{"type":"Warned","ti')
        way.close()
        return nothing

    server = await control.serve(home, obey, killed)
    reads, writer = window
    assert await following.follow(home, Desk(), writer, overruled=False)
    writer.close()
    assert isinstance(wire.event(reads.readline()), Snapshot)
    assert "without a window has ended" in wire.event(reads.readline()).title
    server.close()
