"""Following an engine: a real socket on one side, a real pipe to the window on the other."""

import asyncio
import os
import socket
import threading

import pytest

from waggle.engine import control, following
from waggle.engine.desk import Desk
from waggle.engine.stdio import Writer
from waggle.engine.teller import Teller
from waggle.paths import Home
from waggle.protocol import events, wire
from waggle.protocol.commands import Follow
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
    async with control.serving(home, obey, following.told_to(made, Desk())):
        yield made
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
        for _ in range(200):  # are still on their way then
            teller.tell(events.Warned(title="x" * 4000, advice=""))
        reads.close()
        desk.stop()
        assert await followed


async def test_half_a_line_of_an_engine_that_was_killed_is_not_passed_on(home, window):
    def killed(way):
        way.write(wire.line(Snapshot(state=State(service=True))) + b'{"type":"Warned","ti')
        way.close()
        return nothing

    reads, writer = window
    async with control.serving(home, obey, killed):
        assert await following.follow(home, Desk(), writer, overruled=False)
    writer.close()
    assert isinstance(wire.event(reads.readline()), Snapshot)
    assert "without a window has ended" in wire.event(reads.readline()).title


@pytest.mark.parametrize("known", [True, False])
async def test_a_line_without_an_end_ends_following_and_not_the_window(home, window, monkeypatch, known):
    monkeypatch.setattr(wire, "MAX_LINE", 1 << 16)

    def endless(way):
        way.write((wire.line(Snapshot(state=State(service=True))) if known else b"") + b"x" * (1 << 18))
        return nothing

    reads, writer = window
    async with control.serving(home, obey, endless):
        assert await following.follow(home, Desk(), writer, overruled=False) == known
    writer.close()
    if known:
        assert isinstance(wire.event(reads.readline()), Snapshot)
        assert "has ended" in wire.event(reads.readline()).title


def test_who_is_a_little_behind_when_an_engine_ends_hears_the_last_that_was_told(home, monkeypatch):
    monkeypatch.setattr(control, "LAST_SECONDS", 20.0)
    heard: list[bytes] = []

    async def engine() -> tuple[socket.socket, threading.Thread]:
        teller = Teller(home.events, service=True)
        async with control.serving(home, obey, following.told_to(teller, Desk())):
            connection = await asyncio.to_thread(control.connect, home, 20.0)
            connection.sendall(wire.line(Follow(id="follow")))
            told = connection.makefile("rb")
            assert isinstance(wire.event(await asyncio.to_thread(told.readline)), Snapshot)
            for number in range(500):  # more than a socket holds
                teller.tell(events.Warned(title="x" * 4000, advice=str(number)))
            teller.tell(events.EngineStopped(round=1))
            reads = threading.Thread(target=lambda: heard.extend(told))
            reads.start()
        teller.close()
        return connection, reads

    connection, reads = asyncio.run(engine())
    with connection:
        reads.join(20)
    assert isinstance(wire.event(heard[-1]), events.EngineStopped)
