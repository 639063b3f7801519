"""`waggle top`: shown by textual's pilot at several sizes, beside a real control socket, and on a terminal of its own."""

import asyncio
import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import OptionList

from cli import parity
from cli.test_watch import CONTRIBUTING, PEER, SUMMARY
from protocol.text.test_status_text import READY
from waggle.cli.main import COMMANDS, main
from waggle.cli.shared.outcome import INTERRUPTED
from waggle.cli.watch import followed
from waggle.cli.watch.followed import FollowedEngine
from waggle.cli.watch.view.app import Top
from waggle.cli.watch.view.dialogs import Notice, PauseChoice
from waggle.core import paths
from waggle.core.errors import EngineError
from waggle.engine.attached_windows import follow_handler
from waggle.engine.control import server
from waggle.engine.control.command_queue import CommandQueue
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.protocol import commands, events
from waggle.protocol.schedule import ScheduleDecision
from waggle.protocol.state import AnyEvent, Snapshot, State

SECONDS = 60  # for what happens at once on a computer that does nothing else
HOSTILE = replace(PEER, name="[red]x[/red]\x1b[2J", model="[@click=q]\x1b]x\u202e")
HISTORY = events.TrainingHistory(
    rounds=tuple(replace(SUMMARY, round=number, reward=number / 40) for number in range(30)),
    held_out=tuple(events.HeldOutScore(round=number, at=1.0, right=right, total=270) for number, right in ((0, 0), (25, 42))),
)  # fmt: skip


class Engine:
    """The engine's side of a control socket: it publishes events, and notes commands."""

    def __init__(self, publisher: EventPublisher, state: State) -> None:
        self.publisher, self.sent = publisher, list[commands.AnyCommand]()
        publisher.state = state

    async def obey(self, command: commands.AnyCommand) -> tuple[AnyEvent, ...]:
        match command:
            case commands.Status():
                return Snapshot(state=self.publisher.state), events.CommandDone(id=command.id)
            case commands.QueryHistory():
                return HISTORY, events.CommandDone(id=command.id)
            case commands.Pause(after_round=True):
                raise EngineError("It ends [b]now[/b].", "Wait\x1b[2J.")
        self.sent.append(command)
        return (events.CommandDone(id=command.id),)


@contextlib.asynccontextmanager
async def engine_of(home: paths.Home, state: State = CONTRIBUTING) -> AsyncIterator[Engine]:
    publisher = EventPublisher(home.events, service=True)
    engine = Engine(publisher, state)
    try:
        async with server.serve(home, engine.obey, follow_handler(publisher, CommandQueue())):
            yield engine
    finally:
        publisher.close()


@contextlib.asynccontextmanager
async def watching(home: paths.Home, size: tuple[int, int] = (80, 24)) -> AsyncIterator["Pilot[int]"]:
    app = Top(home, await asyncio.to_thread(FollowedEngine, home), "berta")
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: "Waggle on berta" in text(pilot.app.screen))
        yield pilot


async def until(pilot: "Pilot[int]", holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, text(pilot.app.screen)
        await pilot.pause(0.02)


async def until_shown(pilot: "Pilot[int]", words: str) -> None:
    await until(pilot, lambda: words in text(pilot.app.screen))


def text(screen: Screen[object]) -> str:
    """What a person sees, line by line."""
    return "\n".join(strip.text for strip in screen._compositor.render_strips())


@pytest.fixture
def home(tmp_path: Path) -> paths.Home:
    return paths.Home(tmp_path / "h").prepare()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed, "POLL_SECONDS", 0.05)


@pytest.mark.parametrize(
    ("size", "says"),
    [
        ((80, 24), ("questions >  answering  > judging", "Held-out score 42 of 270 (16%)", "Reward 0.41", "examples", "Log")),
        ((120, 34), ("questions >  answering  > judging", "Held-out score 42 of 270 (16%)", "what is thought of it", "Log")),
        ((40, 12), (" answering  (2 of 6)",)),
    ],
)  # fmt: skip
async def test_it_shows_the_loop_the_charts_the_peers_and_the_log_as_far_as_there_is_room(home, size, says):
    ready = replace(READY, node=PEER.id)
    async with engine_of(home, replace(CONTRIBUTING, ready=ready)), watching(home, size) as pilot:
        await until_shown(pilot, "12 of 64 answers")
        await until_shown(pilot, "Fair Lotus · kekVoMC6")
        for words in (
            "Waggle on berta   Maths swarm",
            "Training in Maths swarm, round 39.",
            "Round 39",
            "Peers: 1 train with you",
            *says,
        ):
            assert words in text(pilot.app.screen), words
        await until_shown(pilot, "q Leave  p Pause  s Sort  ? Help")
        assert len(text(pilot.app.screen).splitlines()) == size[1]


async def test_the_charts_have_the_long_history_and_what_happens_now(home):
    async with engine_of(home) as engine, watching(home) as pilot:
        await until_shown(pilot, "0 rounds")
        assert "▁" in text(pilot.app.screen)
        engine.publisher.publish(events.RoundCompleted(summary=replace(SUMMARY, round=40, reward=0.912)))
        await until_shown(pilot, "Reward 0.91, 40% right, of 41 rounds")
        assert "400 tokens/s   12.5 s a round   2.1 GB of memory" in text(pilot.app.screen).replace("\xa0", " ")
        engine.publisher.publish(events.LoadMeasured(cpu=0.25, celsius=61.0))
        await until(pilot, lambda: "processor 25%   61 °C" in text(pilot.app.screen).replace("\xa0", " "))


async def test_nothing_of_a_stranger_is_markup_or_obeyed(home, tmp_path):
    ready = replace(READY, swarm="[blink]ours[/blink]", name="[/]", model="[link=http://evil.example]m")
    home.logs.mkdir()
    (home.logs / "waggle.log").write_text("2026-11-28 07:39:45,100 INFO    waggle.x: [red]said[/red] \x1b[2J\n", encoding="utf-8")
    state = replace(CONTRIBUTING, ready=ready, peers={HOSTILE.id: HOSTILE})
    async with engine_of(home, state), watching(home, (150, 34)) as pilot:
        await until_shown(pilot, "[red]said[/red] \ufffd[2J")
        await until_shown(pilot, "[red]x[/red]\ufffd[2J · kekVoMC6")
        screen = text(pilot.app.screen)
        assert "[blink]ours[/blink]   [/] · n   [link=http://evil.example]m on cpu" in screen
        assert "[@click=q]\ufffd]x\ufffd" in screen
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, Notice))
        await until_shown(pilot, "─ [red]x[/red]\ufffd[2J ─")
        assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", text(pilot.app.screen))


async def test_a_pause_is_as_long_as_a_person_chooses_and_ends_by_the_same_key(home):
    async with engine_of(home) as engine, watching(home) as pilot:
        await until_shown(pilot, "p Pause")
        await pilot.press("p")
        await until(pilot, lambda: isinstance(pilot.app.screen, PauseChoice))
        await until_shown(pilot, "Until tomorrow morning")
        await pilot.press("escape", "p", "down", "enter")
        await until(pilot, lambda: engine.sent)
        assert [(type(each), each.seconds) for each in engine.sent] == [(commands.Pause, 3600.0)]
        engine.publisher.publish(events.PhaseChanged(phase="paused", round=38, until=time.time() + 3600))
        await until_shown(pilot, "Paused by you: Paused until")
        await until_shown(pilot, "p Resume")
        await pilot.press("p")
        await until(pilot, lambda: len(engine.sent) == 2)
        assert engine.sent[1] == commands.Resume(id=engine.sent[1].id)


async def test_where_rules_wait_it_says_for_what_and_trains_anyway(home):
    decision = ScheduleDecision(standing="waiting", reason="The computer runs on battery.", ends="Starts when you plug it in.")
    async with engine_of(home, replace(CONTRIBUTING, phase="waiting", decision=decision)) as engine, watching(home) as pilot:
        await until_shown(pilot, "Waiting: The computer runs on battery.")
        await until_shown(pilot, "Starts when you plug it in.")
        await until_shown(pilot, "t Train anyway")
        await pilot.press("t")
        await until(pilot, lambda: engine.sent)
        assert isinstance(engine.sent[0], commands.Resume)


async def test_what_the_engine_refuses_is_said_as_it_is(home):
    async with engine_of(home), watching(home) as pilot:
        await until_shown(pilot, "p Pause")
        await pilot.press("p")
        await until(pilot, lambda: isinstance(pilot.app.screen, PauseChoice))
        await pilot.press("end", "enter")
        await until_shown(pilot, "It ends [b]now[/b]. Wait\ufffd[2J.")


async def test_the_start_of_an_engine_is_shown_with_its_parts(home):
    state = State(phase="preparing", preparing=events.Preparing(part="Opening the model", done=3, parts=7))
    async with engine_of(home, state) as engine, watching(home) as pilot:
        await until_shown(pilot, "Getting ready: Opening the model.")
        await until_shown(pilot, "3 of 7 steps")
        await until_shown(pilot, "No peer has been met yet.")
        engine.publisher.publish(events.Downloading(model="bees/[b]large", done=500_000_000, total=900_000_000))
        await until_shown(pilot, "500 of 900 MB")
        assert "bees/[b]large" in text(pilot.app.screen)


async def test_peers_scroll_and_sort_and_those_that_are_gone_come_last(home):
    peers = [replace(PEER, id=f"12D3KooW{n:044d}", name=f"Peer {n:03}", received=n, round=500 - n) for n in range(100)]
    peers.append(replace(PEER, id="12D3KooWgone", name="Peer gone", received=9999, connection="gone"))
    peers.append(replace(PEER, id=f"12D3KooW{'m' * 44}", name="", received=0))
    async with engine_of(home, replace(CONTRIBUTING, peers={peer.id: peer for peer in peers})) as engine, watching(home) as pilot:
        await until_shown(pilot, "Peer 099")
        assert "examples ▾" in text(pilot.app.screen)
        await pilot.press("ctrl+end")
        await until_shown(pilot, "Peer gone")
        assert re.findall(r"Peer gone|12D3KooWm+…", text(pilot.app.screen)) == [f"12D3KooW{'m' * 18}…", "Peer gone"]
        await pilot.press("ctrl+home", *("s" * 5))  # reward, model, reached, opinion, then the first column
        await until_shown(pilot, "peer ▾")
        await until(pilot, lambda: names(pilot)[:2] == ["Peer 000", "Peer 001"])  # below the one without a name
        await pilot.press("s")
        await until(pilot, lambda: names(pilot)[:2] == ["Peer 000", "Peer 001"] and "round ▾" in text(pilot.app.screen))
        engine.publisher.publish(events.PeerChanged(peer=replace(peers[7], round=900)))
        await until(pilot, lambda: names(pilot)[0] == "Peer 007")
        await pilot.resize_terminal(40, 12)
        await until(pilot, lambda: len(text(pilot.app.screen).splitlines()) == 12)
        assert "Peer 007" in text(pilot.app.screen)
        await pilot.press("right", "right", "right", "right")
        await until_shown(pilot, "901")


def names(pilot: "Pilot[int]") -> list[str]:
    return re.findall(r"Peer (?:\d{3}|gone)", text(pilot.app.screen))


async def test_it_says_how_an_engine_ended_and_goes_on_with_the_next(home, caplog):
    async with engine_of(home) as engine:
        app = Top(home, await asyncio.to_thread(FollowedEngine, home), "berta")
        context = app.run_test(size=(80, 24))
        pilot = await context.__aenter__()
        await until(pilot, lambda: engine.publisher._listeners)
        await until_shown(pilot, "p Pause")
        engine.publisher.publish(events.EngineStopped(round=38))
    await until_shown(pilot, "The engine has stopped. Everything is kept.")
    await until(pilot, lambda: "p Pause" not in text(pilot.app.screen))
    async with engine_of(home, replace(CONTRIBUTING, round=39)):
        await until_shown(pilot, "Training in Maths swarm, round 40.")
    await until_shown(pilot, "The engine ended without saying why. `waggle log` may tell.")
    async with engine_of(home) as engine:
        await until_shown(pilot, "Training in Maths swarm, round 39.")
        await until(pilot, lambda: engine.publisher._listeners)
        engine.publisher.publish(events.EngineFailed(title="The disk is [b]full[/b].", advice="Make room."))
    await until_shown(pilot, "The engine has ended. The disk is [b]full[/b]. Make room.")
    await context.__aexit__(None, None, None)
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == [
        "failed: The disk is [b]full[/b]. Make room."
    ]
    caplog.clear()


async def test_an_engine_that_a_window_has_is_asked_again_and_again(home):
    with parity.recording_engine(home) as engine:  # it refuses followers, as such an engine does
        watched = await asyncio.to_thread(FollowedEngine, home)
        first, following = watched.state.at, asyncio.create_task(watched.follow())
        async with asyncio.timeout(SECONDS):
            while watched.state.at <= first + 4:
                await asyncio.sleep(0.01)
        following.cancel()
        assert engine.sent.count("Status") > 2
        assert "QueryHistory" in engine.sent


async def test_help_is_on_a_key_and_any_of_its_keys_closes_it(home):
    async with engine_of(home), watching(home) as pilot:
        await pilot.press("question_mark")
        await until_shown(pilot, "leave; the engine keeps running")
        await pilot.press("q")
        await until(pilot, lambda: not isinstance(pilot.app.screen, Notice))
        assert pilot.app.return_value is None


@pytest.mark.parametrize(("key", "code"), [("q", None), ("ctrl+c", INTERRUPTED)])
async def test_leaving_works_also_from_a_dialog_by_ctrl_c(home, key, code):
    async with engine_of(home), watching(home) as pilot:
        await until_shown(pilot, "p Pause")
        await pilot.press("p")
        await until(pilot, lambda: isinstance(pilot.app.screen, PauseChoice))
        assert pilot.app.screen.query_one(OptionList).highlighted == 0
        await pilot.press(*(["escape"] if key == "q" else []), key)
        await until(pilot, lambda: not pilot.app.is_running or pilot.app._exit)
        assert pilot.app.return_value == code


async def test_without_colour_nothing_is_coloured(home, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with engine_of(home), watching(home) as pilot:
        await until_shown(pilot, "Fair Lotus")
        for strip in pilot.app.screen._compositor.render_strips():
            for filter_ in pilot.app.get_line_filters():
                strip = strip.apply_filter(filter_, pilot.app.screen.background_colors[1])
            assert all(style is None or not style.color or style.color.is_default for _, style, _ in strip)


@pytest.mark.parametrize("terminal", ["dumb", "", "xterm"])
def test_without_a_terminal_it_says_that_one_is_needed(home, terminal, monkeypatch, capsys):
    monkeypatch.setenv("TERM", terminal)
    if terminal != "xterm" and sys.platform == "win32":
        pytest.skip("terminals of Windows have no TERM")
    if terminal != "xterm":
        monkeypatch.setattr("waggle.cli.watch.top._is_terminal", lambda stream: True)
    with parity.recording_engine(home):
        assert main(["--home", str(home.root), "top"]) == 1
    assert "`waggle top` draws on a whole terminal, and this is none." in capsys.readouterr().err


def test_without_an_engine_it_says_so(home, capsys):
    assert main(["--home", str(home.root), "top"]) == 1
    assert "No engine is running" in capsys.readouterr().err


def test_no_other_command_imports_textual():
    code = (
        "import sys; from waggle.cli import main\n"
        "for name in main.COMMANDS: main._import_command(name)\n"
        "print([name for name in ('textual', 'waggle.cli.watch.view') if name in sys.modules])"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": "app"}
    )
    assert output.stdout == "[]\n"
    assert "top" in COMMANDS


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of one's own is a pty")
@pytest.mark.parametrize(("last", "code"), [(b"q", 0), (b"\x03", INTERRUPTED)])
def test_on_a_terminal_it_obeys_keys_and_leaves_the_terminal_as_it_was(home, last, code):
    from cli.terminal import Terminal  # which Windows has not

    command = [sys.executable, "-m", "waggle", "top", "--home", str(home.root)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm"}
    with parity.recording_engine(home) as engine, Terminal(command, environment) as terminal:
        terminal.read_until_written(b"Pause")
        terminal.press(b"p")
        terminal.read_until_written(b"Until tomorrow morning")
        terminal.press(b"\r")
        terminal.read_until(lambda: "Pause" in engine.sent)
        terminal.press(last)
        assert terminal.exit_code() == code
        assert b"Maths swarm" in terminal.raw
        assert terminal.is_as_before()
