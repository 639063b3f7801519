"""What the panels of `waggle top` say of a State."""

from textual.content import Content

from waggle.cli.watch.plot import Point
from waggle.core.message import plain
from waggle.core.peer_id import with_fingerprint
from waggle.core.text.round_number import round_number
from waggle.protocol.events import HeldOutScore, PeerInfo, RoundSummary
from waggle.protocol.figures.current import held_out_scores, newest_score, speed
from waggle.protocol.figures.daily_totals import engine_date
from waggle.protocol.peer_names import own_name
from waggle.protocol.state import HALTED_PHASES, STAGES, State
from waggle.protocol.text.peer_text import standing_text
from waggle.protocol.text.status_text import DOING, Tone, sentence

TONES: dict[Tone, str] = {"accent": "bold $success", "plain": "bold", "peer": "bold $secondary", "bad": "bold $error"}
ARROW, BAR, FULL, EMPTY = " > ", 30, "━", "╌"
GAP = "   "
UNBREAKABLE = "\N{NO-BREAK SPACE}"
NEXT = "This view continues when an engine starts: `waggle engine`."
KILO = 1e3


def heading(state: State, host: str, width: int) -> Content:
    """The computer, the swarm, this node and its model, on one line of `width` cells."""
    parts = [f"Waggle on {host}"]
    if (ready := state.ready) is not None:
        parts += [ready.swarm, with_fingerprint(own_name(ready), ready.node), f"{ready.model} on {ready.device}"]
    return Content(f" {GAP.join(plain(part) for part in parts)}").truncate(width, ellipsis=True, pad=True)


def status(state: State, trouble: str) -> Content:
    """What the engine does and why, and what ends it; or what came between it and this view."""
    if trouble:
        return Content.assemble((plain(trouble), TONES["bad"]), "\n", NEXT)
    summary = sentence(state)
    says = summary.says if summary.says.startswith(summary.word) else f"{summary.word}: {summary.says}"
    return Content.assemble((plain(says), TONES[summary.tone]), "\n", plain(summary.detail))


def loop_title(state: State) -> Content:
    return Content("Start" if state.phase == "preparing" else f"Round {round_number(state.round):,}")


def loop(state: State, width: int) -> Content:
    """Two lines: the steps of the round, with the present one marked, and how far it is. At a start: how far that is."""
    if state.phase == "preparing":
        return _start(state, width)
    line = Content(ARROW).join(_step(state, position) for position in range(len(STAGES)))
    if line.cell_length > width and state.stage is not None:
        line = Content.assemble(_step(state, STAGES.index(state.stage)), f" ({STAGES.index(state.stage) + 1} of {len(STAGES)})")
    answered = 0 if state.stage == "draw" else state.answered  # those of the round before stay until the next has questions
    return Content("\n").join([line, _bar(answered, state.answers_expected, "answers", width)])


def _step(state: State, position: int) -> Content:
    stage = STAGES[position]
    if stage == state.stage:
        return Content.styled(f" {DOING[stage]} ", "dim reverse" if state.phase in HALTED_PHASES else "bold reverse")
    return Content.styled(str(DOING[stage]), "dim")


def _start(state: State, width: int) -> Content:
    """The start of the engine has no rounds yet: its parts, or the bytes of a download."""
    if (download := state.downloading) is not None:
        megabytes = 1_000_000
        return Content("\n").join(
            [Content(plain(download.model)), _bar(download.done // megabytes, download.total // megabytes, "MB", width)]
        )
    if (part := state.preparing) is not None:
        return _bar(part.done, part.parts, "steps", width)
    return Content("")


def _bar(done: int, expected: int, what: str, width: int) -> Content:
    if not expected:
        return Content("")
    words = f" {done:,} of {expected:,} {what}"
    cells = max(0, min(BAR, width - len(words)))
    filled = min(cells, cells * done // expected)
    return Content.assemble((FULL * filled, "$success"), (EMPTY * (cells - filled), "dim"), words)


def figures(state: State) -> Content:
    """What it takes of this computer, as far as that is known. A figure is never broken between two lines."""
    newest = next(iter((*state.rounds[-1:], *state.recalled[-1:])), None)
    pace, load, energy = speed(state), state.load, state.energy
    parts = [
        f"{pace:,.0f} tokens/s" if pace is not None else "",
        f"{newest.seconds:.1f} s a round" if newest is not None else "",
        f"{newest.memory / 1e9:.1f} GB of memory" if newest is not None and newest.memory else "",
        f"processor {load.cpu:.0%}" if load is not None else "",
        f"{load.celsius:.0f} °C" if load is not None and load.celsius is not None else "",
        f"{KILO * energy.kwh:,.{0 if KILO * energy.kwh >= 10 else 1}f} Wh today"
        if energy is not None and energy.date == engine_date(state, state.at).isoformat()
        else "",
        f"up {state.up / KILO:,.1f} kB/s, down {state.down / KILO:,.1f} kB/s" if state.reach == "connected" else "",
    ]
    return Content(GAP.join(part.replace(" ", UNBREAKABLE) for part in parts if part))


def score_title(state: State) -> Content:
    score = newest_score(state)
    if score is None:
        return Content("Held-out score: not measured yet")
    return Content(f"Held-out score {score.right} of {score.total} ({score.right / score.total:.0%})")


def scores(state: State) -> list[Point]:
    """The shares of the held-out questions that were answered right, on the same questions as the newest score."""
    newest = newest_score(state)
    if newest is None:
        return []
    return [(score.round, score.right / score.total) for score in held_out_scores(state) if _same_questions(score, newest)]


def _same_questions(score: HeldOutScore, newest: HeldOutScore) -> bool:
    return (score.exam, score.total) == (newest.exam, newest.total)


def reward_title(state: State) -> Content:
    rounds = every_round(state)
    if not rounds:
        return Content("Reward: no round yet")
    newest = rounds[-1]
    played = state.round if state.ready is not None else round_number(newest.round)  # the long history has some of them only
    return Content(f"Reward {newest.reward:.2f}, {newest.solved:.0%} right, of {played:,} round{'' if played == 1 else 's'}")


def rewards(state: State) -> list[Point]:
    return [(round_number(summary.round), summary.reward) for summary in every_round(state)]


def every_round(state: State) -> list[RoundSummary]:
    """The long history, and the rounds of before and since this start of the engine, each once and in order."""
    known = {summary.round: summary for summary in (*state.history, *state.recalled, *state.rounds)}
    return [known[number] for number in sorted(known)]


def peers_title(state: State) -> Content:
    return Content(f"Peers: {len(state.members)} train with you, {len(state.peers)} known")


def about_peer(peer: PeerInfo, now: float) -> Content:
    """All that is known of a peer, at the unix time `now`."""
    facts = [
        standing_text(peer, now),
        f"{peer.model or 'a model that it does not name'}{f', round {round_number(peer.round):,}' if peer.received else ''}",
        f"{peer.received:,} examples came from it, {peer.useful:,} were useful, {peer.used:,} were learned from",
        f"{peer.groups_pulled:,} examples went to it",
        f"its answers earned {peer.mean_reward:.2f} on average",
        f"id {peer.id}",
    ]
    return Content("\n".join(plain(fact) for fact in facts))
