"""What an engine does, in short lines for a terminal."""

import sys

from waggle.core.message import plain
from waggle.core.peer_id import with_fingerprint
from waggle.core.text.round_number import round_number
from waggle.protocol.events import Aha, HeldOutScore, RoundSummary
from waggle.protocol.state import HALTED_PHASES, State
from waggle.protocol.text.company import with_whom
from waggle.protocol.text.status_text import DOING, sentence


def round_line(summary: RoundSummary, score: HeldOutScore | None, peers: int, width: int = sys.maxsize) -> str:
    """One finished round: its number, the last held-out score, reward, peers, speed and memory, as far as `width` has room."""
    parts = [
        f"round {round_number(summary.round):>5}",
        f"held-out {score.right / score.total:>6.1%}" if score is not None and score.total else "held-out      -",
        f"reward {summary.reward:.3f}",
        f"right {summary.solved:>4.0%}",
        _company(peers, summary.external),
        f"{summary.tokens / summary.seconds:,.0f} tokens/s" if summary.seconds else "",
        f"{summary.memory / 1e9:.1f} GB" if summary.memory else "",
        f"{summary.seconds:.1f} s",
    ]
    line = ""
    for part in filter(None, parts):
        longer = f"{line}  {part}" if line else part
        if len(longer) > width:
            break
        line = longer
    return line


def first_answer_line(aha: Aha) -> str:
    """The first right answer in a specialty, and the peer whose answer was learned from before it."""
    teacher = f", learned from {with_fingerprint(aha.name, aha.origin)}" if aha.origin else ""
    return plain(f"First right answer in {aha.specialty}{teacher}.")


def _company(peers: int, groups: int) -> str:
    """The peers that are here now, and how many groups of peers the round learned from: their authors may have left."""
    from_peers = "1 group" if groups == 1 else f"{groups} groups"
    if not peers:
        return f"{from_peers} of peers" if groups else "alone"
    return f"peers {peers} ({from_peers})"


def live_line(state: State) -> str:
    """What happens now, or what the engine waits for."""
    summary = sentence(state)
    if state.phase in ("contributing", "finishing"):
        doing = DOING[state.stage] if state.stage is not None else "beginning"
        count = f" {state.answered} of {state.answers_expected}" if state.stage == "answer" else ""
        later = f"  {summary.word}: {summary.says}" if state.phase == "finishing" else ""
        return plain(f"round {round_number(state.round)}: {doing}{count}  {with_whom(state)}{later}")
    if state.phase in HALTED_PHASES or state.waits_for_choice:
        return plain(f"{summary.word}: {summary.says} {summary.detail}".strip())
    return plain(f"{summary.word}: {summary.says}")
