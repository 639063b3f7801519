"""Test how a window follows an engine, with a real socket on one side and a real pipe on the other."""

import asyncio
import os
import select
import socket
import threading
import time

import pytest

from waggle.core.paths import Home
from waggle.engine import attached_windows
from waggle.engine.control import server
from waggle.engine.control.command_queue import CommandQueue
from waggle.engine.control.stdio import Writer
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.protocol import commands, events, json_lines
from waggle.protocol.commands import Follow
from waggle.protocol.state import Snapshot, State
from waggle.rl.batch import nothing

WAITING = "Waiting for the engine that runs without a window"


async def obey(command):
    return (events.CommandDone(id=command.id),)


async def never(command):
    await asyncio.Event().wait()


def once(follow):
    """A server that sends this to the first client only; later ones cannot follow it."""
    listeners = [follow]

    def attach(way):
        if not listeners:
            return server.refuse_follower(way)
        return listeners.pop()(way)

    return attach


@pytest.fixture
def soon(monkeypatch):
    monkeypatch.setattr(attached_windows, "RECONNECT_SECONDS", 0.3)
    monkeypatch.setattr(attached_windows, "RECONNECT_POLL_SECONDS", 0.01)


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "h").prepare()


@pytest.fixture
async def publisher(home):
    """The publisher of the engine that runs in this home."""
    publisher = EventPublisher(home.events, service=True)
    async with server.serve(home, obey, attached_windows.follow_handler(publisher, CommandQueue())):
        yield publisher
    publisher.close()


@pytest.fixture
def window():
    """The window's end of the pipe, and the writer to it."""
    reading, writing = os.pipe()
    writer = Writer(writing)
    with os.fdopen(reading, "rb", buffering=0) as ours:
        yield ours, writer
    writer.close()
    os.close(writing)


async def test_who_follows_for_a_window_that_reads_no_more_and_dies_leaves_too(home, publisher, window):
    reads, writer = window
    queue = CommandQueue()
    followed = asyncio.create_task(attached_windows.follow_service(home, queue, writer, has_overrides=False))
    async with asyncio.timeout(60):
        while writer.unwritten_bytes() <= attached_windows.MAX_UNREAD_BYTES:
            publisher.publish(events.Warned(title="x" * 4000, advice=""))
            await asyncio.sleep(0)
        for _ in range(200):  # are still on their way then
            publisher.publish(events.Warned(title="x" * 4000, advice=""))
        reads.close()
        queue.stop()
        assert await followed


def line_of(reads):
    assert select.select([reads], [], [], 60.0)[0], "a window waits in vain"
    return reads.readline()


async def told_to_window(reads, kind):
    """The next event of this kind that a window reads, without the Snapshot of following."""
    event = json_lines.event(await asyncio.to_thread(line_of, reads))
    if event == events.CommandDone(id="follow"):
        event = json_lines.event(await asyncio.to_thread(line_of, reads))
    assert isinstance(event, kind), event
    return event


def nothing_more(reads, writer):
    """Whether a window has read everything that was written to it."""
    writer.close()
    os.set_blocking(reads.fileno(), False)
    return reads.read() is None


async def leave(queue, followed):
    """Close the window; the process that follows for it ends at once."""
    queue.stop()
    async with asyncio.timeout(60):
        assert await followed


async def test_an_engine_that_is_started_anew_is_followed_again_and_asked_again(home, window):
    reads, writer = window
    queue = CommandQueue()
    first, second = (EventPublisher(home.events, service=True) for _ in range(2))
    async with server.serve(home, obey, attached_windows.follow_handler(first, CommandQueue())):
        followed = asyncio.create_task(attached_windows.follow_service(home, queue, writer, has_overrides=True))
        await told_to_window(reads, Snapshot)
        assert "left out" in (await told_to_window(reads, events.Warned)).title
        first.publish(events.EngineStopped(round=1))
        await told_to_window(reads, events.EngineStopped)
    assert (await told_to_window(reads, events.Preparing)).part == WAITING
    resuming = asyncio.create_task(queue.obey(commands.Resume(id="meanwhile")))
    async with server.serve(home, obey, attached_windows.follow_handler(second, CommandQueue())):
        await told_to_window(reads, Snapshot)
        assert (await told_to_window(reads, events.CommandDone)).id == "meanwhile", "it waited, and nothing is said twice"
        await resuming
        await leave(queue, followed)
    first.close()
    second.close()


async def test_what_an_engine_did_not_answer_any_more_is_refused_and_a_window_may_leave_while_it_is_waited_for(home, window):
    reads, writer = window
    queue = CommandQueue()

    def attach(way):
        way.write(json_lines.line(Snapshot(state=State(service=True))))
        return nothing

    async with server.serve(home, never, attach):
        followed = asyncio.create_task(attached_windows.follow_service(home, queue, writer, has_overrides=False))
        await told_to_window(reads, Snapshot)
        await queue.obey(commands.Resume(id="one"))
    refused = await told_to_window(reads, events.CommandRefused)
    assert (refused.id, refused.title) == ("one", "The engine ended before it answered.")
    assert refused.at == pytest.approx(time.time(), abs=60), "a journal says when"
    await told_to_window(reads, events.Preparing)
    await leave(queue, followed)
    assert nothing_more(reads, writer), "nothing ended that it wanted"


@pytest.mark.parametrize(
    ("last", "then"),
    [
        (events.EngineStopped(round=1), [events.Preparing, events.EngineStopped]),
        (events.Warned(title="Hot.", advice=""), [events.Preparing, events.EngineFailed]),
        (events.EngineFailed(title="No room.", advice=""), []),
    ],
)
async def test_an_engine_that_ended_for_good_is_said_to_have_after_a_while_and_one_that_failed_says_why(
    home, window, soon, last, then
):
    def ends(way):
        way.write(json_lines.line(Snapshot(state=State(service=True))) + json_lines.line(last))
        way.close()
        return nothing

    reads, writer = window
    async with server.serve(home, obey, once(ends)), asyncio.timeout(60):
        assert await attached_windows.follow_service(home, CommandQueue(), writer, has_overrides=False)
    for kind in (Snapshot, type(last), *then):
        await told_to_window(reads, kind)
    assert nothing_more(reads, writer)


async def test_half_a_line_of_an_engine_that_was_killed_is_not_passed_on(home, window, soon):
    def killed(way):
        way.write(json_lines.line(Snapshot(state=State(service=True))) + b'{"type":"Warned","ti')
        way.close()
        return nothing

    reads, writer = window
    async with server.serve(home, obey, once(killed)):
        assert await attached_windows.follow_service(home, CommandQueue(), writer, has_overrides=False)
    writer.close()
    assert isinstance(json_lines.event(reads.readline()), Snapshot)
    assert json_lines.event(reads.readline()).part == WAITING
    assert "without a window has ended" in json_lines.event(reads.readline()).title


@pytest.mark.parametrize("known", [True, False])
async def test_a_line_without_an_end_ends_following_and_not_the_window(home, window, soon, monkeypatch, known):
    monkeypatch.setattr(json_lines, "MAX_LINE", 1 << 16)

    def endless(way):
        way.write((json_lines.line(Snapshot(state=State(service=True))) if known else b"") + b"x" * (1 << 18))
        return nothing

    reads, writer = window
    async with server.serve(home, obey, once(endless)):
        assert await attached_windows.follow_service(home, CommandQueue(), writer, has_overrides=False) == known
    writer.close()
    if known:
        assert isinstance(json_lines.event(reads.readline()), Snapshot)
        assert json_lines.event(reads.readline()).part == WAITING
        assert "has ended" in json_lines.event(reads.readline()).title


def test_who_is_a_little_behind_when_an_engine_ends_hears_the_last_that_was_told(home, monkeypatch):
    monkeypatch.setattr(server, "DRAIN_SECONDS", 60.0)
    lines: list[bytes] = []

    async def engine() -> tuple[socket.socket, threading.Thread]:
        publisher = EventPublisher(home.events, service=True)
        async with server.serve(home, obey, attached_windows.follow_handler(publisher, CommandQueue())):
            connection = await asyncio.to_thread(server.connect, home, 60.0)
            connection.sendall(json_lines.line(Follow(id="follow")))
            stream = connection.makefile("rb")
            assert isinstance(json_lines.event(await asyncio.to_thread(stream.readline)), Snapshot)
            for number in range(500):  # more than a socket holds
                publisher.publish(events.Warned(title="x" * 4000, advice=str(number)))
            publisher.publish(events.EngineStopped(round=1))
            reads = threading.Thread(target=lambda: lines.extend(stream))
            reads.start()
        publisher.close()
        return connection, reads

    connection, reads = asyncio.run(engine())
    with connection:
        reads.join(60)
    assert isinstance(json_lines.event(lines[-1]), events.EngineStopped)
