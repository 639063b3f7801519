"""The screen of `waggle top`: what the engine does, the loop of the round, the chart of the rewards, the peers."""

import time

from rich.console import Group, RenderableType
from rich.layout import Layout
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from waggle.cli.watch.plot import plot
from waggle.cli.watch.words import live_line, round_line
from waggle.core.message import plain
from waggle.core.peer_id import with_fingerprint
from waggle.protocol.events import HeldOutScore, RoundSummary
from waggle.protocol.figures import newest_score, speed
from waggle.protocol.state import STAGES, State
from waggle.protocol.text.peer_text import standing_text
from waggle.protocol.text.status_text import DOING, sentence

KEYS = "q: leave   p: pause   r: resume"
TONES = {"accent": "green", "plain": "default", "peer": "cyan", "bad": "red"}
MOST_CHART_LINES, LEAST_PEERS = 10, 2
OTHER_LINES = 16  # of the head, the loop and the keys, and the frames of the chart and of the peers
BAR, FRAME = 40, 4  # characters


def screen(state: State, ended: str, width: int, height: int) -> RenderableType:
    """The whole screen for a State, of this size in characters."""
    lines = max(2, min(MOST_CHART_LINES, height - OTHER_LINES - LEAST_PEERS))
    layout = Layout()
    layout.split_column(
        Layout(_head(state, ended), name="head", size=5),
        Layout(_loop(state, width - FRAME), name="loop", size=5),
        Layout(_chart(state, max(10, width - FRAME - 2), lines), name="chart", size=lines + 2),
        Layout(_peers(state, height - lines - OTHER_LINES), name="peers"),
        Layout(Text(KEYS, style="dim"), name="keys", size=1),
    )
    return layout


def _head(state: State, ended: str) -> RenderableType:
    summary = sentence(state)
    lines = [Text(plain(f"{summary.word}: {summary.says}"), style=f"bold {TONES[summary.tone]}"), Text(plain(summary.detail))]
    if ended:
        lines = [Text(plain(ended), style="bold red"), Text("")]
    ready = state.ready
    who = f"{with_fingerprint(ready.name, ready.node)}, {ready.model} on {ready.device}" if ready is not None else ""
    lines.append(Text(plain(who), style="dim"))
    return Panel(Group(*lines), title=Text(plain(f"Waggle: {ready.swarm if ready is not None else 'starting'}")))


def _loop(state: State, width: int) -> RenderableType:
    """Three lines: the stages, the answers, the last round. A terminal of 80 characters has room for all stages."""
    indent = "  "
    stages = Text(indent)
    for position, stage in enumerate(STAGES):
        stages.append(" > " if position else "")
        stages.append(DOING[stage], style="reverse" if stage == state.stage else "dim")
    filled = BAR * state.answered // max(1, state.answers_expected)
    bar = Text(f"  {'█' * filled}{'·' * (BAR - filled)}  {state.answered} of {state.answers_expected} answers")
    room, score = width - len(indent), newest_score(state)
    last = round_line(state.rounds[-1], score, len(state.members), room) if state.rounds else live_line(state)
    lines = (stages, bar, Text(f"{indent}{plain(last)}"))
    for line in lines:
        line.no_wrap, line.overflow = True, "ellipsis"
    return Panel(Group(*lines), title=f"Round {state.round}")


def _chart(state: State, width: int, height: int) -> RenderableType:
    rounds = _every_round(state)
    rewards = [summary.reward for summary in rounds]
    top = max([*rewards, 0.01])
    lines = [Text(line, style="green") for line in plot(rewards, width, height, top)]
    score = _score_words(newest_score(state))
    played = f"{state.round} round{'' if state.round == 1 else 's'}"  # the long history has some of them only
    title = f"Reward of {played}, 0 to {top:.2f}   {score}   {speed(state) or 0.0:,.0f} tokens/s"
    return Panel(Group(*lines), title=Text(title))


def _every_round(state: State) -> list[RoundSummary]:
    """The long history and the recent rounds, each once."""
    return [*{summary.round: summary for summary in (*state.history, *state.rounds)}.values()]


def _score_words(score: HeldOutScore | None) -> str:
    return f"held-out {score.right} of {score.total}" if score is not None else "no held-out score yet"


def _peers(state: State, count: int) -> RenderableType:
    table = Table(expand=True, box=None, show_edge=False, pad_edge=False)
    for name in ("peer", "model", "round", "groups", "reward"):
        table.add_column(name, no_wrap=True)
    table.add_column("what is thought of it", ratio=1, no_wrap=True, overflow="ellipsis")
    peers = sorted(state.peers.values(), key=lambda peer: (peer.connection == "gone", -peer.received, peer.name))
    for peer in peers[: max(1, count)]:
        cells = (
            with_fingerprint(peer.name, peer.id), peer.model, str(peer.round), str(peer.received), f"{peer.mean_reward:.2f}",
            standing_text(peer, time.time()),
        )  # fmt: skip
        table.add_row(*(Text(plain(cell)) for cell in cells), style="dim" if peer.connection == "gone" else "")
    return Panel(table if peers else Text("No peer has been met yet."), title=f"Peers: {len(state.members)} train with you")
