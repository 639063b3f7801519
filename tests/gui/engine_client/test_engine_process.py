"""The engine process: commands reach it, deaths are reported and repaired, malformed output is never shown."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

import waggle
from waggle.core.settings import Settings
from waggle.engine.main import HANDOVER_SECONDS
from waggle.gui.engine_client import engine_process
from waggle.gui.engine_client.engine_process import STOP_TIMEOUT, EngineProcess, command_line, remote_command_line
from waggle.protocol import events, json_lines
from waggle.protocol.commands import Pause, Resume, SendMessage
from waggle.protocol.events_chat import TurnProgress
from waggle.protocol.state import AnyEvent

FAKE = Path(__file__).parents[1] / "fake_engine.py"
StartedEngine = tuple[EngineProcess, list[AnyEvent]]
SH = "the ssh of this test is a script of sh"


@pytest.fixture
def engine(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], StartedEngine]]:
    """Start a fake engine of a kind, and collect its events."""
    monkeypatch.setenv("PYTHONPATH", f"{Path(waggle.__file__).parents[1]}{os.pathsep}{FAKE.parents[1]}")
    processes: list[EngineProcess] = []

    def start(kind: str) -> StartedEngine:
        farewell = 1.0 if kind == "stubborn" else 10.0
        process = EngineProcess(lambda: [sys.executable, str(FAKE), kind], backoff=(0.01, 0.01, 0.01), farewell=farewell)
        received: list[AnyEvent] = []
        process.event_received.connect(received.append)
        process.start()
        processes.append(process)
        return process, received

    yield start
    for process in processes:
        if process.is_running:
            with qtbot.waitSignal(process.ended, timeout=20_000):
                process.stop()


def kinds(received: list[AnyEvent]) -> list[str]:
    return [type(event).__name__ for event in received]


def test_the_real_engine_is_started_by_this_python() -> None:
    assert command_line(["--solo"]) == [sys.executable, "-P", "-m", "waggle", "engine", "--stdio", "--solo"]


def test_pausing_and_resuming_go_there_and_back(engine: Callable[[str], StartedEngine], qtbot: QtBot) -> None:
    process, received = engine("well")
    qtbot.waitUntil(lambda: "PhaseChanged" in kinds(received), timeout=20_000)
    assert process.send(Pause(id="one", until=99.0))
    qtbot.waitUntil(lambda: "CommandDone" in kinds(received), timeout=20_000)
    paused = received[-2]
    assert isinstance(paused, events.PhaseChanged)
    assert (paused.phase, paused.until) == ("paused", 99.0)
    assert process.send(Resume(id="two"))
    qtbot.waitUntil(lambda: kinds(received).count("CommandDone") == 2, timeout=20_000)


def test_a_followed_engine_that_is_started_anew_can_be_asked_again(engine: Callable[[str], StartedEngine], qtbot: QtBot) -> None:
    process, received = engine("followed")
    qtbot.waitUntil(lambda: "PhaseChanged" in kinds(received), timeout=20_000)
    assert kinds(received)[:2] == ["EngineStopped", "Preparing"]
    assert process.send(Pause(id="one"))
    qtbot.waitUntil(lambda: "CommandDone" in kinds(received), timeout=20_000)


def test_a_conversation_in_another_window_is_not_heard_in_this_one(engine: Callable[[str], StartedEngine], qtbot: QtBot) -> None:
    process, received = engine("well")
    qtbot.waitUntil(lambda: "PhaseChanged" in kinds(received), timeout=20_000)
    process.send(SendMessage(id="one", words="Hello", number=0))
    qtbot.waitUntil(lambda: "CommandDone" in kinds(received), timeout=20_000)
    assert [event.turn.words for event in received if isinstance(event, TurnProgress)] == ["Hello"]


def test_a_refused_command_says_why(engine: Callable[[str], StartedEngine], qtbot: QtBot) -> None:
    process, received = engine("well")
    qtbot.waitUntil(lambda: "PhaseChanged" in kinds(received), timeout=20_000)
    process.send(Pause(id="one", after_round=True))
    qtbot.waitUntil(lambda: "CommandRefused" in kinds(received), timeout=20_000)
    refused = received[-1]
    assert isinstance(refused, events.CommandRefused)
    assert (refused.title, refused.advice, refused.id) == ("This round is the last.", "Pause now instead.", "one")


def test_a_dead_engine_is_started_three_times_and_no_more(engine: Callable[[str], StartedEngine], qtbot: QtBot) -> None:
    process, received = engine("dies")
    qtbot.waitUntil(lambda: "EngineFailed" in kinds(received), timeout=20_000)
    gone = [event for event in received if isinstance(event, events.EngineGone)]
    assert [(event.code, event.restarts) for event in gone] == [(7, 1), (7, 2), (7, 3)]
    failed = received[-1]
    assert isinstance(failed, events.EngineFailed)
    assert "out of memory, said the fake" in failed.detail
    assert not process.is_running


def test_an_engine_that_said_why_it_failed_is_left_alone(engine: Callable[[str], StartedEngine], qtbot: QtBot) -> None:
    process, received = engine("fails")
    qtbot.waitUntil(lambda: bool(received) and not process.is_running, timeout=20_000)
    assert kinds(received) == ["EngineFailed"]


@pytest.mark.parametrize(
    ("kind", "words"), [("babbles", "something unknown"), ("old", "protocol -1"), ("old and followed", "protocol -1")]
)
def test_an_engine_that_is_not_understood_is_ended(
    engine: Callable[[str], StartedEngine], qtbot: QtBot, kind: str, words: str
) -> None:
    process, received = engine(kind)
    qtbot.waitUntil(lambda: bool(received) and not process.is_running, timeout=20_000)
    failed = received[-1]
    assert isinstance(failed, events.EngineFailed)
    assert words in failed.title
    assert kinds(received) == ["EngineFailed"]


def test_an_engine_that_is_started_meanwhile_waits_longer_for_the_one_before_than_its_window_does() -> None:
    assert STOP_TIMEOUT < HANDOVER_SECONDS


def test_a_program_that_is_not_there_is_said_to_be_so(qtbot: QtBot) -> None:
    process = EngineProcess(lambda: ["/nowhere/waggle-engine"])
    received: list[AnyEvent] = []
    process.event_received.connect(received.append)
    process.start()
    qtbot.waitUntil(lambda: bool(received), timeout=20_000)
    assert kinds(received) == ["EngineFailed"]
    with qtbot.waitSignal(process.ended):
        process.stop()


def test_leaving_is_asked_for_and_granted(engine: Callable[[str], StartedEngine], qtbot: QtBot) -> None:
    process, received = engine("well")
    qtbot.waitUntil(lambda: "PhaseChanged" in kinds(received), timeout=20_000)
    with qtbot.waitSignal(process.ended, timeout=20_000):
        process.stop()
    assert kinds(received)[-1] == "EngineStopped"
    assert not process.send(Pause(id="late"))


def test_an_engine_that_will_not_leave_is_ended(engine: Callable[[str], StartedEngine], qtbot: QtBot) -> None:
    process, received = engine("stubborn")
    qtbot.waitUntil(lambda: "PhaseChanged" in kinds(received), timeout=20_000)
    with qtbot.waitSignal(process.ended, timeout=20_000):
        process.stop()
    assert not process.is_running


@pytest.mark.skipif(sys.platform == "win32", reason=SH)
def test_an_engine_on_another_computer_is_driven_through_ssh_as_if_it_were_here(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Fake ssh runs its command in a local shell; a fake waggle lies where pipx installs it."""
    monkeypatch.setenv("PYTHONPATH", f"{Path(waggle.__file__).parents[1]}{os.pathsep}{FAKE.parents[1]}")
    (tmp_path / ".local/bin").mkdir(parents=True)
    for name, body in (
        ("ssh", 'exec sh -c "$8"'),
        (".local/bin/waggle", f'[ "$1 $2" = "engine --stdio" ] && exec {sys.executable} {FAKE} well'),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("HOME", str(tmp_path))
    process, received = (
        EngineProcess(lambda: remote_command_line("box", ["--set", "model.name=a b"]), host="box", farewell=10.0),
        list[AnyEvent](),
    )
    process.event_received.connect(received.append)
    process.start()
    qtbot.waitUntil(lambda: "PhaseChanged" in kinds(received), timeout=20_000)
    with qtbot.waitSignal(process.ended, timeout=20_000):
        process.stop()
    assert kinds(received)[-1] == "EngineStopped"


Far = Callable[[str], StartedEngine]


@pytest.fixture
def far(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Far]:
    """Start an engine on host `box`; ssh is a script of these lines, or missing if there are none."""
    monkeypatch.setenv("PATH", str(tmp_path))
    processes: list[EngineProcess] = []

    def start(body: str) -> StartedEngine:
        if body and sys.platform == "win32":
            pytest.skip(SH)
        if body:
            (tmp_path / "ssh").write_text(f"#!/bin/sh\n{body}\n")
            (tmp_path / "ssh").chmod(0o700)
        process, received = EngineProcess(lambda: remote_command_line("box"), host="box", backoff=(0.01, 0.01)), list[AnyEvent]()
        process.event_received.connect(received.append)
        process.start()
        processes.append(process)
        return process, received

    yield start
    for process in processes:
        with qtbot.waitSignal(process.ended, timeout=20_000):
            process.stop()


@pytest.mark.parametrize(
    ("body", "title", "advice"),
    [
        (
            "echo 'No ED25519 host key is known for box.' >&2; echo 'Host key verification failed.' >&2; echo >&2; exit 255",
            "box cannot be reached by ssh.",
            "Host key verification failed.",
        ),
        ("printf 'env: \\033[1mwaggle\\n' >&2; exit 127", "There is no Waggle on box.", "env: \u241b[1mwaggle"),
        ("printf '%0999d' 0 >&2; exit 255", "box cannot be reached by ssh.", "0" * 300),
        ("", "ssh is missing on this computer.", "Install OpenSSH, then start again."),
    ],
)  # fmt: skip
def test_what_ssh_cannot_reach_is_said_at_once_in_its_own_words(
    far: Far, qtbot: QtBot, body: str, title: str, advice: str
) -> None:
    process, received = far(body)
    qtbot.waitUntil(lambda: bool(received) and not process.is_running, timeout=20_000)
    (failed,) = received
    assert isinstance(failed, events.EngineFailed)
    assert (failed.title, failed.advice) == (title, advice)


BREAKS = 'cd {folder}; if [ -e event ]; then read -r line <event; echo "$line"; /bin/rm event; fi; exit {code}'


def test_a_connection_that_breaks_later_is_tried_until_it_is_there_again(
    far: Far, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_process, "LONGEST_BACKOFF", 0.01)
    (tmp_path / "event").write_bytes(json_lines.line(events.Preparing(part="Warming up", done=0, parts=1)))
    process, received = far(BREAKS.format(folder=tmp_path, code=255))
    qtbot.waitUntil(lambda: len(received) > 6, timeout=60_000)
    assert process.is_running
    gone = [event for event in received if isinstance(event, events.EngineGone)]
    assert [(event.host, event.restarts) for event in gone] == [("box", i + 1) for i in range(len(gone))]
    assert set(kinds(received)) == {"Preparing", "EngineGone"}, "that an engine ended so many times in a row is not so"
    (tmp_path / "next").write_bytes(json_lines.line(events.EngineFailed(title="No room.", advice="Make some.")))
    (tmp_path / "next").rename(tmp_path / "event")  # whole, whenever it is looked for
    qtbot.waitUntil(lambda: kinds(received)[-1] == "EngineFailed" and not process.is_running, timeout=60_000)


PREPARING = json_lines.line(events.Preparing(part="Waiting until another engine has left this folder", done=0, parts=1))
STARTS = "cd {folder}; echo >>starts; set -- $(/usr/bin/wc -l starts); /bin/cat $1.said; exit $(/bin/cat $1.code)"


def test_the_engine_of_a_connection_that_broke_is_waited_for_until_it_has_heard_of_that(
    far: Far, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_process, "LONGEST_BACKOFF", 0.01)
    failed = json_lines.line(events.EngineFailed(title="Another engine, or a seed, is running for this folder.", advice=""))
    settings = json_lines.line(events.SettingsChanged(settings=Settings()))
    begun = [(PREPARING + settings, 255), (PREPARING + failed, 1), (PREPARING + failed, 1), (PREPARING + settings + failed, 1)]
    for number, (ssh_words, code) in enumerate(begun, 1):
        (tmp_path / f"{number}.said").write_bytes(ssh_words)
        (tmp_path / f"{number}.code").write_text(str(code))
    process, received = far(STARTS.format(folder=tmp_path))
    qtbot.waitUntil(lambda: "EngineFailed" in kinds(received) and not process.is_running, timeout=60_000)
    assert kinds(received) == [
        "Preparing", "SettingsChanged", "EngineGone", "Preparing", "Preparing", "Preparing", "SettingsChanged", "EngineFailed",
    ]  # fmt: skip


def test_an_engine_on_another_computer_whose_folder_is_taken_is_not_begun_again_unless_a_connection_broke(
    far: Far, qtbot: QtBot, tmp_path: Path
) -> None:
    (tmp_path / "1.said").write_bytes(
        PREPARING + json_lines.line(events.EngineFailed(title="Another engine is running.", advice=""))
    )
    (tmp_path / "1.code").write_text("1")
    process, received = far(STARTS.format(folder=tmp_path))
    qtbot.waitUntil(lambda: len(received) == 2 and not process.is_running, timeout=60_000)
    assert kinds(received) == ["Preparing", "EngineFailed"]


def test_an_engine_on_another_computer_that_dies_is_started_as_often_as_one_here(far: Far, qtbot: QtBot, tmp_path: Path) -> None:
    (tmp_path / "event").write_bytes(json_lines.line(events.Preparing(part="Warming up", done=0, parts=1)))
    process, received = far(BREAKS.format(folder=tmp_path, code=7))
    qtbot.waitUntil(lambda: "EngineFailed" in kinds(received) and not process.is_running, timeout=60_000)
    assert kinds(received) == ["Preparing", "EngineGone", "EngineGone", "EngineFailed"]


def test_begun_by_hand_the_other_computer_has_to_be_reached_first(far: Far, qtbot: QtBot, tmp_path: Path) -> None:
    (tmp_path / "event").write_bytes(json_lines.line(events.EngineFailed(title="No room.", advice="Make some.")))
    process, received = far(BREAKS.format(folder=tmp_path, code=255))
    qtbot.waitUntil(lambda: "EngineFailed" in kinds(received) and not process.is_running, timeout=60_000)
    process.start()
    qtbot.waitUntil(lambda: kinds(received).count("EngineFailed") == 2 and not process.is_running, timeout=60_000)
    assert isinstance(received[-1], events.EngineFailed)
    assert received[-1].title == "box cannot be reached by ssh."
