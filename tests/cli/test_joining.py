"""`waggle swarm join`: it waits for the engine, and says why the engine came back."""

import inspect
import os
import sys
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from protocol.text.test_status_text import READY
from waggle.cli.main import main
from waggle.cli.shared import waiting
from waggle.cli.swarms.described import COME_BACK, ENDS_SOLO, MODEL_STAYS, PRIVATE, before_joining
from waggle.engine.control import server
from waggle.gui.pages.swarms import swarm_preview
from waggle.protocol import commands, events
from waggle.protocol.events_swarms import KnownSwarms, SpecialtyDetails, SwarmDetails
from waggle.protocol.state import AnyEvent, Snapshot, State
from waggle.protocol.text.privacy_text import SHARED, STAYS
from waggle.protocol.text.swarm_text import UNCHECKED

TARGET, EARLIER = "ab" * 32, "cd" * 32
Join = Callable[..., int]
OURS = SwarmDetails(charter=TARGET, name="Ours", specialties=())
LIGHT = SwarmDetails(charter=EARLIER, name="First light", specialties=(), active=True)


def state(at: int, ready: int, charter: str = EARLIER, **changes) -> State:
    """A State of this time; its engine was ready at the other."""
    swarm = "Ours" if charter == TARGET else "First light"
    return State(at=at, phase="contributing", ready=replace(READY, at=ready, charter=charter, swarm=swarm), **changes)


def preparing(at: int, part: str) -> State:
    return replace(state(at, 5), phase="preparing", preparing=events.Preparing(part=part, done=0, parts=7))


@pytest.fixture
def join(tmp_path, monkeypatch) -> Join:
    def join(*states: State | None, chosen: tuple[AnyEvent, ...] = (), words: tuple[str, ...] = ("--yes",)) -> int:
        later: list[State | None] = []

        def answer(home, command, seconds=0.0) -> list[AnyEvent]:
            if isinstance(command, commands.ChooseSwarm):
                later.extend(states)
                return [*chosen, events.CommandDone(id=command.id)]
            if isinstance(command, commands.ListSwarms):
                return [KnownSwarms(swarms=(OURS, LIGHT)), events.CommandDone(id=command.id)]
            present = state(10, 5) if not later else later.pop(0) if len(later) > 1 else later[0]  # the last one stays
            if present is None:
                return [events.CommandRefused(id=command.id, title="Training is starting again.", advice="")]
            return [Snapshot(state=present), events.CommandDone(id=command.id)]

        monkeypatch.setattr(server, "is_running", lambda home: True)
        monkeypatch.setattr(server, "send_command", answer)
        monkeypatch.setattr(waiting, "POLL_SECONDS", 0.0)
        return main(["--home", str(tmp_path), "swarm", "join", TARGET, *words])

    return join


def test_it_waits_until_the_engine_has_joined(join, capsys):
    parts = [preparing(21, "Downloading the swarm's questions"), preparing(22, "Opening the model")]
    assert join(state(15, 5), *parts, None, parts[1], state(30, 25, TARGET)) == 0
    printed = capsys.readouterr()
    assert printed.out == "The engine has joined Ours.\n"
    assert printed.err.endswith("Downloading the swarm's questions.\nOpening the model.\n")


@pytest.mark.parametrize("message", waiting.UNDONE)
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
    monkeypatch.setattr(waiting, "START_SECONDS", 0.0)
    assert join() == 1
    assert "has not joined the swarm yet" in capsys.readouterr().err


def test_a_swarm_that_the_engine_is_in_needs_no_wait(join, capsys):
    assert join(chosen=(KnownSwarms(swarms=()),)) == 0
    assert capsys.readouterr().out == "The engine has joined Ours.\n"


def test_what_the_window_asks_before_joining_is_printed_and_nothing_joins_without_a_yes(join, capsys):
    assert join(state(30, 25, TARGET), words=()) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Ours\n" in printed.err
    for sentence in (SHARED, STAYS, "It is open to everybody."):
        assert sentence in printed.err
    assert "Add --yes if you want it." in printed.err


def test_answers_that_nobody_verified_are_called_so_as_in_the_window():
    logic = SpecialtyDetails(title="Logic", levels=("hard",), unchecked=("hard",))
    swarm = SwarmDetails(charter=TARGET, name="Ours", specialties=(logic,))
    assert f"\nAnswers not verified: {UNCHECKED}\n" in before_joining(swarm, None, None, solo=False)
    assert str(UNCHECKED) not in before_joining(OURS, None, None, solo=False)


def test_the_sentences_about_joining_are_those_of_the_window():
    window = inspect.getsource(swarm_preview)
    for sentence in (COME_BACK, ENDS_SOLO, PRIVATE):
        assert f'tr("{sentence}")' in window
    assert MODEL_STAYS in window


@pytest.mark.parametrize(("answer", "code"), [(b"y\n", 0), (b"\n", 1), (b"no\n", 1)])
@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of one's own is a pty")
def test_a_person_at_a_terminal_is_asked(join, capsys, monkeypatch, answer, code):
    person, terminal = os.openpty()
    os.write(person, answer)
    with os.fdopen(terminal) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert join(state(30, 25, TARGET), words=()) == code
    os.close(person)
    printed = capsys.readouterr()
    assert "Join Ours? [y/N]" in printed.err
    assert ("has joined Ours" in printed.out) == (code == 0)


def test_a_more_open_swarm_than_the_present_one_is_named_so():
    private = replace(LIGHT, private=True, name="Home")
    assert "More people can take part than where you are now: Home is private." in before_joining(OURS, private, None, solo=False)
    assert "More people" not in before_joining(OURS, LIGHT, None, solo=False)
    assert "More people" not in before_joining(replace(OURS, private=True), private, None, solo=False)
    assert ENDS_SOLO in before_joining(OURS, LIGHT, None, solo=True)
