"""`waggle swarm join`: it waits for the engine, and says why the engine came back."""

from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace

from protocol.test_status_text import READY
from waggle.cli.main import main
from waggle.cli.shared import joining
from waggle.engine.control import server
from waggle.protocol import commands, events
from waggle.protocol.events_swarms import KnownSwarms
from waggle.protocol.state import AnyEvent, Snapshot, State

TARGET, EARLIER = "ab" * 32, "cd" * 32
Join = Callable[..., int]


def state(at: int, ready: int, charter: str = EARLIER, **changes) -> State:
    """A State of this time; its engine was ready at the other."""
    swarm = "Ours" if charter == TARGET else "First light"
    return State(at=at, phase="contributing", ready=replace(READY, at=ready, charter=charter, swarm=swarm), **changes)


def preparing(at: int, part: str) -> State:
    return replace(state(at, 5), phase="preparing", preparing=events.Preparing(part=part, done=0, parts=7))


@pytest.fixture
def join(tmp_path, monkeypatch) -> Join:
    def join(*states: State | None, chosen: tuple[AnyEvent, ...] = ()) -> int:
        later: Iterator[State | None] = iter((state(10, 5), *states))

        def answer(home, command, seconds=0.0) -> list[AnyEvent]:
            if isinstance(command, commands.ChooseSwarm):
                return [*chosen, events.CommandDone(id=command.id)]
            present = next(later)
            if present is None:
                return [events.CommandRefused(id=command.id, title="The engine is starting again.", advice="")]
            return [Snapshot(state=present), events.CommandDone(id=command.id)]

        monkeypatch.setattr(server, "send_command", answer)
        monkeypatch.setattr(joining, "POLL_SECONDS", 0.0)
        return main(["--home", str(tmp_path), "swarm", "join", TARGET])

    return join


def test_it_waits_until_the_engine_has_joined(join, capsys):
    parts = [preparing(21, "Downloading the swarm's questions"), preparing(22, "Opening the model")]
    assert join(state(15, 5), *parts, None, parts[1], state(30, 25, TARGET)) == 0
    printed = capsys.readouterr()
    assert printed.out == "The engine has joined Ours.\n"
    assert printed.err == "Downloading the swarm's questions.\nOpening the model.\n"


@pytest.mark.parametrize("message", joining.UNDONE)
def test_an_engine_that_comes_back_says_why_with_exit_code_1(join, capsys, message):
    why = events.Warned(at=17, title="Nobody has the questions.", advice=f"Try again later. {message}")
    others = (events.Warned(at=19, title="The disk is slow."), why, events.Warned(at=9, title="Long ago."))
    assert join(preparing(16, "Looking"), state(40, 35, warnings=others)) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    words = " ".join(printed.err.split())
    assert "The engine came back to First light: Nobody has the questions. Try again later." in words
    assert join(state(40, 35)) == 1
    words = " ".join(capsys.readouterr().err.split())
    assert "The engine came back to First light. `waggle log` may have the reason." in words


@pytest.mark.parametrize("seq", [2, 9, 90])
def test_an_engine_of_a_new_process_counts_its_events_from_1(join, seq):
    arrived = state(30, 25, TARGET)
    assert join(replace(arrived, seq=seq, ready=replace(arrived.ready, seq=1))) == 0


def test_it_does_not_wait_for_ever(join, capsys, monkeypatch):
    monkeypatch.setattr(joining, "JOIN_SECONDS", 0.0)
    assert join() == 1
    assert "has not joined the swarm yet" in capsys.readouterr().err


def test_a_swarm_that_the_engine_is_in_needs_no_wait(join, capsys):
    assert join(chosen=(KnownSwarms(swarms=()),)) == 0
    assert "in this swarm already" in capsys.readouterr().out
