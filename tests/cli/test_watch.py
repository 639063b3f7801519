"""`waggle engine` on a terminal: lines for people, and never a byte of a stranger that a terminal would obey."""

import os
import re
import select
import sys

import pytest
from msgspec.structs import replace

from protocol.text.test_status_text import READY
from waggle.cli.watch import terminal_writer
from waggle.cli.watch.plot import plot, spread
from waggle.cli.watch.words import first_answer_line, live_line, round_line
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
    assert line == "round    38  held-out  15.6%  reward 0.412  right  40%  peers 1 (3 groups)  400 tokens/s  2.1 GB  12.5 s"
    bare = round_line(replace(SUMMARY, memory=0, seconds=0.0, external=0), None, 0)
    assert bare == "round    38  held-out      -  reward 0.412  right  40%  alone  0.0 s"
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
    assert live_line(CONTRIBUTING) == "round 39: answering 12 of 64  with 1 peer"
    assert live_line(replace(CONTRIBUTING, reach="alone", stage="learn")) == "round 39: learning  alone: nobody else is here"
    paused = live_line(replace(CONTRIBUTING, phase="paused"))
    assert paused == "Paused by you: Paused. Nothing was lost. Continues when you resume."
    preparing = State(phase="preparing", preparing=events.Preparing(part="Opening the model", done=3, parts=7))
    assert live_line(preparing) == "Getting ready: Opening the model."


def test_a_chart_is_as_high_as_its_values():
    assert plot([0.0, 0.5, 1.0], 1, 1.0) == ["▁▄█"], "0 is a thin line"
    assert plot([None, 0.5, 1.0], 2, 1.0) == ["  █", " ██"]
    assert plot([2.0], 2, 1.0) == ["█", "█"], "what is too high is cut"
    assert plot([], 2, 1.0) == ["", ""]


def test_points_are_spread_over_the_columns_of_their_rounds():
    assert spread([(0, 0.0), (1, 1.0)], 0, 1, 4) == [0.0, 0.0, 1.0, 1.0]
    assert spread([(0, 1.0), (1, 0.0), (2, 0.5), (3, 0.5)], 0, 3, 2) == [0.5, 0.5], "the mean of two rounds"
    assert spread([(2, 0.5)], 0, 3, 4) == [None, None, 0.5, 0.5], "the value before stays"
    assert spread([], 0, 0, 2) == [None, None]


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
    assert "round    38  held-out  15.6%  reward 0.412" in text
    assert "The disk\ufffd[2J is slow." in text
    assert "Stopped. Everything is kept." in text
    assert b"\x1b[2J" not in raw
