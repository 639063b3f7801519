"""What an engine does, in short lines for a terminal."""

from waggle.core.message import plain
from waggle.protocol.events import HeldOutScore, RoundSummary
from waggle.protocol.state import HALTED_PHASES, State
from waggle.protocol.text.company import with_whom
from waggle.protocol.text.status_text import DOING, sentence


def round_line(summary: RoundSummary, score: HeldOutScore | None, peers: int) -> str:
    """One finished round: its number, the last held-out score, reward, peers, speed and memory."""
    parts = [
        f"round {summary.round:>5}",
        f"held-out {score.right / score.total:>6.1%}" if score is not None and score.total else "held-out      -",
        f"reward {summary.reward:.3f}",
        f"right {summary.solved:>4.0%}",
        f"peers {peers} ({summary.external} groups)" if peers or summary.external else "alone",
        f"{summary.tokens / summary.seconds:,.0f} tokens/s" if summary.seconds else "",
        f"{summary.memory / 1e9:.1f} GB" if summary.memory else "",
        f"{summary.seconds:.1f} s",
    ]
    return "  ".join(filter(None, parts))


def live_line(state: State) -> str:
    """What happens now, or what the engine waits for."""
    summary = sentence(state)
    if state.phase in ("contributing", "finishing"):
        doing = DOING[state.stage] if state.stage is not None else "beginning"
        count = f" {state.answered} of {state.answers_expected}" if state.stage == "answer" else ""
        later = f"  {summary.word}: {summary.says}" if state.phase == "finishing" else ""
        return plain(f"round {state.round}: {doing}{count}  {with_whom(state)}{later}")
    if state.phase in HALTED_PHASES or state.waits_for_choice:
        return plain(f"{summary.word}: {summary.says} {summary.detail}".strip())
    return plain(f"{summary.word}: {summary.says}")
