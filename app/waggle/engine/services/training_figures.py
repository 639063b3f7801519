"""What the status page shows of this node's own model: figures from the State and the history.

The page may be open to everybody, so that it tells what the engine does, but not why: that would say what a person does.
"""

import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress

from waggle.core.message import plain
from waggle.core.peer_id import fingerprint
from waggle.core.text.round_number import round_number
from waggle.engine.storage.history import History
from waggle.network.web.training_status import AhaStatus, HeldOutStatus, SpecialtyScore, TrainingStatus
from waggle.protocol import events
from waggle.protocol.figures.current import newest_score, speed
from waggle.protocol.state import STAGES, State
from waggle.protocol.text.company import company, with_whom
from waggle.protocol.text.status_text import DOING

HISTORY_SECONDS = 60.0  # how long the long history is used before it is read anew; newer rounds are in the State
MAX_POINTS = 240  # of a curve


class TrainingFigures:
    """Called on the loop's thread, at most once a second, by whoever serves the page."""

    def __init__(self, state: Callable[[], State], history: History) -> None:
        self._state, self._history = state, history
        self._read_at = -HISTORY_SECONDS
        self._long = events.TrainingHistory(rounds=(), held_out=())

    def __call__(self) -> TrainingStatus | None:
        """The current figures; None until the node is ready."""
        state = self._state()
        if state.ready is None:
            return None
        if time.monotonic() - self._read_at >= HISTORY_SECONDS:
            self._read_at = time.monotonic()
            with suppress(sqlite3.Error):  # damaged meanwhile, which the training loop reports: the page has the newest rounds
                self._long = self._history.chart_points()
        return training_status(state, state.ready, self._long)


def training_status(state: State, ready: events.Ready, long: events.TrainingHistory) -> TrainingStatus:
    """The figures of the present swarm. Rounds and scores of the same model in other swarms are of other questions."""
    titles = {specialty.title for specialty in ready.specialties}
    rounds = _rounds((*long.rounds, *state.recalled, *state.rounds), ready.swarm)
    scores = _scores((*long.held_out, *state.held_out), titles)
    last, newest = (rounds[-1] if rounds else None), newest_score(state, long.held_out)
    return TrainingStatus(
        name=plain(ready.name), fingerprint=fingerprint(ready.node), model=plain(ready.model), device=plain(ready.device),
        phase=state.phase, says=_sentence(state), company=company(state),
        connected=len(state.connected), members=len(state.members), round=state.round,
        ahas=_first_answers((*long.ahas, *state.ahas), titles),
        reward=last.reward if last else None,
        solved=last.solved if last else None,
        external_share=last.metrics.external_share if last else None,
        learning_rate=last.metrics.learning_rate if last else None,
        entropy=last.metrics.entropy if last else None,
        tokens_per_second=speed(state),
        memory=(last.memory or None) if last else None,
        held_out=_held_out(newest, ready.specialties) if newest else None,
        rewards=_thinned([(summary.round, summary.reward) for summary in rounds]),
        scores=_thinned([(score.round, score.right / score.total) for score in scores if score.total]),
    )  # fmt: skip


def _first_answers(ahas: Iterable[events.Aha], titles: Collection[str]) -> tuple[AhaStatus, ...]:
    """The first right answer of each specialty, oldest first. Those of earlier runs of the engine are in its history."""
    oldest_first = sorted((aha for aha in ahas if aha.specialty in titles), key=lambda aha: aha.at)
    first: dict[str, AhaStatus] = {}
    for aha in oldest_first:
        first.setdefault(aha.specialty, AhaStatus(specialty=aha.specialty, at=aha.at, origin=aha.origin))
    return tuple(first.values())


def _rounds(summaries: Sequence[events.RoundSummary], swarm: str) -> list[events.RoundSummary]:
    """Those of this swarm, each once, in order. Earlier versions did not write the swarm."""
    by_number = {summary.round: summary for summary in summaries if summary.swarm in ("", swarm)}
    return [by_number[number] for number in sorted(by_number)]


def _scores(scores: Sequence[events.HeldOutScore], titles: set[str]) -> list[events.HeldOutScore]:
    """Those on the same questions as the newest of this swarm, each once, in order."""
    by_round = {score.round: score for score in scores if titles.issuperset(score.by_specialty)}
    ordered = [by_round[number] for number in sorted(by_round)]
    return [score for score in ordered if (score.exam, score.early) == (ordered[-1].exam, ordered[-1].early)]


def _held_out(score: events.HeldOutScore, specialties: Sequence[events.SpecialtyInfo]) -> HeldOutStatus:
    counts = score.by_specialty
    return HeldOutStatus(
        round=score.round, right=score.right, total=score.total, early=score.early,
        specialties=tuple(
            SpecialtyScore(dataset=each.dataset, title=each.title, right=counts[each.title][0], total=counts[each.title][1])
            for each in specialties
            if each.title in counts
        ),
    )  # fmt: skip


def _sentence(state: State) -> str:
    match state.phase:
        case "contributing" | "finishing":
            return f"Round {round_number(state.round)}: {DOING[state.stage or STAGES[0]]}, {with_whom(state)}."
        case "paused":
            return f"Paused in round {round_number(state.round)}."
        case "waiting":
            return f"Waiting in round {round_number(state.round)} for a better moment."
        case _:
            return "Not training now."


def _thinned(points: list[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    """The points, or the means of equal spans of rounds if there are many; each stands at the last round of its span."""
    if len(points) <= MAX_POINTS:
        return tuple(points)
    first, span = points[0][0], points[-1][0] - points[0][0] + 1
    parts: dict[int, list[tuple[int, float]]] = {}
    for number, value in points:
        parts.setdefault((number - first) * MAX_POINTS // span, []).append((number, value))
    return tuple((part[-1][0], sum(value for _, value in part) / len(part)) for part in parts.values())
