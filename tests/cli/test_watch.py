"""`waggle engine` on a terminal and `waggle top`: lines for people, and never a byte of a stranger that a terminal would obey."""

import io
import os
import re
import select
import subprocess
import sys
import time

import pytest
from msgspec.structs import replace
from rich.console import Console

from cli import parity
from protocol.text.test_status_text import READY
from waggle.cli.main import main
from waggle.cli.watch import followed, terminal_writer
from waggle.cli.watch.plot import plot
from waggle.cli.watch.screen import screen
from waggle.cli.watch.words import first_answer_line, live_line, round_line
from waggle.core import paths
from waggle.protocol import events, json_lines
from waggle.protocol.state import State, apply

CODES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
SUMMARY = events.RoundSummary(
    round=37, at=1.0, reward=0.412, solved=0.4, seconds=12.5, completions=64, tokens=5000, external=3, memory=2_140_000_000
)
SCORE = events.HeldOutScore(round=25, at=1.0, right=42, total=270)
PEER = events.PeerInfo(id="12D3KooWDHeRk8J6AhoMXYPqAtzi6y2U9JCJ6oFo9twJkekVoMC6", name="Fair Lotus", received=8, mean_reward=0.5)
CONTRIBUTING = State(phase="contributing", round=38, stage="answer", answered=12, answers_expected=64, reach="connected",
                     peers={"p": PEER}, ready=READY, rounds=(SUMMARY,), held_out=(SCORE,))  # fmt: skip


def test_the_line_of_a_round_has_its_figures():
    line = round_line(SUMMARY, SCORE, 1)
    assert line == "round    37  held-out  15.6%  reward 0.412  right  40%  peers 1 (3 groups)  400 tokens/s  2.1 GB  12.5 s"
    bare = round_line(replace(SUMMARY, memory=0, seconds=0.0, external=0), None, 0)
    assert bare == "round    37  held-out      -  reward 0.412  right  40%  alone  0.0 s"
    assert "  8 groups of peers  " in round_line(replace(SUMMARY, external=8), SCORE, 0), "their authors have left"
    assert "  peers 2 (1 group)  " in round_line(replace(SUMMARY, external=1), SCORE, 2)
    assert line.startswith(cut := round_line(SUMMARY, SCORE, 1, 76))
    assert cut.endswith("  peers 1 (3 groups)")


def test_the_first_right_answer_names_whose_it_was_learned_from_as_the_list_of_peers_does():
    aha = events.Aha(round=1, at=1.0, specialty="Logic", origin=PEER.id, name="Brisk Otter")
    state = State()
    for event in (events.PeerChanged(peer=replace(PEER, name="Kim")), events.AhaHappened(aha=aha)):
        state = apply(state, event)
    assert first_answer_line(state.ahas[-1]) == "First right answer in Logic, learned from Kim · kekVoMC6."
    assert first_answer_line(events.Aha(round=1, at=1.0, specialty="Logic")) == "First right answer in Logic."


def test_the_live_line_says_what_happens_or_what_it_waits_for():
    assert live_line(CONTRIBUTING) == "round 38: answering 12 of 64  with 1 peer"
    assert live_line(replace(CONTRIBUTING, reach="alone", stage="learn")) == "round 38: learning  alone: nobody else is here"
    paused = live_line(replace(CONTRIBUTING, phase="paused"))
    assert paused == "Paused by you: Paused. Nothing was lost. Goes on when you resume."
    preparing = State(phase="preparing", preparing=events.Preparing(part="Opening the model", done=3, parts=7))
    assert live_line(preparing) == "Preparing: Opening the model."


def test_a_chart_is_as_high_as_its_values():
    assert plot([0.0, 0.5, 1.0], 3, 1) == [" ▄█"]
    assert plot([0.0, 0.5, 1.0], 3, 2) == ["  █", " ██"]
    assert plot([1.0, 1.0, 0.0, 0.0], 2, 1) == ["█ "], "two values a column"
    assert plot([], 5, 2) == ["", ""]
    assert plot([0.0, 0.0], 5, 1) == ["  "]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 20), (120, 34)])
def test_the_screen_shows_the_loop_the_chart_and_the_peers_and_obeys_nobody(width, height):
    peer = replace(PEER, model="evil\x1b[2Jmodel", name="[red]x")
    state = replace(CONTRIBUTING, peers={"p": peer}, rounds=tuple(replace(SUMMARY, round=n, reward=n / 40) for n in range(38)))
    console = Console(width=width, height=height, file=io.StringIO(), force_terminal=False)
    console.print(screen(state, "", width, height), height=height)
    text = console.file.getvalue()
    assert "\x1b" not in text
    assert "gathering > learning" in text
    assert "12 of 64 answers" in text
    assert "round    37  held-out  15.6%  reward 0.925" in text
    assert "█" in text
    assert "[red]x" in text
    assert "Peers: 1 train with you" in text
    assert len(text.splitlines()) == height


def test_top_without_a_terminal_prints_the_view_once(tmp_path, capsys):
    home = paths.Home(tmp_path).prepare()
    with parity.recording_engine(home):
        assert main(["--home", str(tmp_path), "top"]) == 0
    assert "Waggle: Maths swarm" in capsys.readouterr().out
    assert main(["--home", str(tmp_path), "top"]) == 1
    assert "No engine is running" in capsys.readouterr().err


def test_an_engine_that_a_window_has_is_asked_again_and_again(tmp_path, monkeypatch):
    monkeypatch.setattr(followed, "POLL_SECONDS", 0.05)
    home = paths.Home(tmp_path).prepare()
    with parity.recording_engine(home):  # it refuses followers, as such an engine does
        engine = followed.FollowedEngine(home)
        engine.start()
        first = engine.state.at
        deadline = time.monotonic() + 30
        while engine.state.at <= first + 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert engine.state.at > first + 2
        engine.close()


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of one's own is a pty")
def test_a_terminal_gets_a_line_for_each_round_and_what_happens_now():
    ours, theirs = os.openpty()
    writer = terminal_writer.TerminalWriter(theirs)
    happening = (
        replace(READY, seq=1, at=1.0), events.PhaseChanged(seq=2, at=1.0, phase="contributing", round=37),
        events.HeldOutMeasured(seq=3, score=SCORE), events.Warned(seq=4, title="The disk\x1b[2J is slow."),
        events.RoundCompleted(seq=5, summary=SUMMARY), events.EngineStopped(seq=6, round=38),
    )  # fmt: skip
    for event in happening:
        writer(json_lines.line(event))
    writer.close()
    assert writer.unwritten_bytes() == 0
    raw = b""
    while select.select([ours], [], [], 0.2)[0]:
        raw += os.read(ours, 1 << 16)
    os.close(ours)
    text = CODES.sub("", raw.decode())
    assert "round    37  held-out  15.6%  reward 0.412" in text
    assert "The disk\ufffd[2J is slow." in text
    assert "Stopped. Everything is kept." in text
    assert b"\x1b[2J" not in raw


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of one's own is a pty")
def test_top_shows_an_engine_on_a_terminal_obeys_keys_and_leaves_the_terminal_as_it_was(tmp_path):
    import termios

    home = paths.Home(tmp_path).prepare()
    person, terminal = os.openpty()
    before = termios.tcgetattr(terminal)
    command = [sys.executable, "-m", "waggle", "top", "--home", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm"}
    with parity.recording_engine(home) as engine:
        with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=subprocess.PIPE, env=environment) as program:
            deadline, raw = time.monotonic() + 60, b""
            while b"Maths swarm" not in raw and time.monotonic() < deadline:
                raw += os.read(person, 1 << 16) if select.select([person], [], [], 0.1)[0] else b""
            os.write(person, b"p")
            while "Pause" not in engine.sent and time.monotonic() < deadline:
                raw += os.read(person, 1 << 16) if select.select([person], [], [], 0.1)[0] else b""
            os.write(person, b"q")
            while program.poll() is None and time.monotonic() < deadline:
                raw += os.read(person, 1 << 16) if select.select([person], [], [], 0.1)[0] else b""
            assert (program.wait(30), program.stderr.read()) == (0, b"")
        assert "Pause" in engine.sent
    assert "Maths swarm" in CODES.sub("", raw.decode(errors="replace"))
    assert termios.tcgetattr(terminal) == before
    os.close(person)
    os.close(terminal)
