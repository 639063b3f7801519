"""The runs of a node: rounds that were played under one name, with their rewards and held-out scores, to list and to compare.

Their name is the setting `tracking.run`, or is made of model, swarm and learning settings, as tools of research have it.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import msgspec

from waggle.core import paths
from waggle.core.confidence_interval import interval_of
from waggle.core.errors import HistoryError
from waggle.core.message import Message
from waggle.engine.storage import run_file
from waggle.protocol.events import HeldOutScore, RoundSummary

LAST = 20  # rounds whose mean is the reward of now
PARTS = 10  # of a comparison


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """Rounds of one name, oldest first, and the scores that were measured between them."""

    name: str
    folder: str  # of its node
    rounds: tuple[RoundSummary, ...]
    scores: tuple[HeldOutScore, ...]

    @property
    def reward(self) -> float:
        """The mean of its last rounds."""
        return _mean(self.rounds[-LAST:])


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A run in a few figures. `held_out` is the share of right answers in the last score, with its 95% interval."""

    name: str
    folder: str
    swarm: str
    rule: str
    first: int
    last: int
    rounds: int
    reward: float
    held_out: float | None = None
    interval: tuple[float, float] | None = None
    finished: float  # unix seconds


class ComparedPart(msgspec.Struct, frozen=True, kw_only=True):
    """Rounds `first` to `last`, counted from the beginning of each run: mean rewards, and the newest scores by then."""

    first: int
    last: int
    reward: tuple[float, float]
    held_out: tuple[float | None, float | None]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs as far as both go. `differ` says whether the intervals of their last held-out scores leave each other out."""

    runs: tuple[RunFacts, RunFacts]
    parts: tuple[ComparedPart, ...]
    differ: bool | None  # None: one of them has no score


def trained_models(home: paths.Home) -> list[paths.Home]:
    """The home with each of its models that has a history, the first one at its root."""
    folders = (None, *sorted(path.parent for path in home.root.glob("models/*/history.sqlite")))
    return [place for folder in folders if (place := replace(home, model_root=folder)).model.history.exists()]


def runs_of(home: paths.Home) -> list[Run]:
    """All runs of all models of a node, the newest last. Raises HistoryError."""
    return sorted((run for place in trained_models(home) for run in _runs_in(place)), key=lambda run: run.rounds[-1].at)


def find(name: str, home: paths.Home) -> Run:
    """The newest run of this name. Raises HistoryError."""
    known = runs_of(home)
    for run in reversed(known):
        if run.name == name:
            return run
    names = ", ".join(dict.fromkeys(run.name for run in known)) or "none yet"
    raise HistoryError(
        Message("There is no run %1.", name), Message("Known here: %1. The folder of a node is its newest run.", names)
    )


def facts_of(run: Run) -> RunFacts:
    score = next((score for score in reversed(run.scores) if score.total), None)
    return RunFacts(
        name=run.name, folder=run.folder, swarm=run.rounds[-1].swarm, rule=run.rounds[-1].rule, first=run.rounds[0].round,
        last=run.rounds[-1].round, rounds=len(run.rounds), reward=run.reward, finished=run.rounds[-1].at,
        held_out=score.right / score.total if score else None,
        interval=interval_of(score.right, score.total) if score else None,
    )  # fmt: skip


def compare(first: Run, second: Run) -> Comparison:
    """Compare two runs over the rounds that both have played, in equal parts."""
    runs = (first, second)
    shared = min(map(len, (run.rounds for run in runs)))
    edges = sorted({shared * part // PARTS for part in range(PARTS + 1)})
    parts = [
        ComparedPart(
            first=low, last=high - 1, reward=(_mean(first.rounds[low:high]), _mean(second.rounds[low:high])),
            held_out=(_score_by(first, high), _score_by(second, high)),
        )
        for low, high in pairwise(edges)
    ]  # fmt: skip
    facts = (facts_of(first), facts_of(second))
    intervals = [fact.interval for fact in facts if fact.interval is not None]
    differ = intervals[0][1] < intervals[1][0] or intervals[1][1] < intervals[0][0] if len(intervals) == len(facts) else None
    return Comparison(runs=facts, parts=tuple(parts), differ=differ)


def _runs_in(place: paths.Home) -> list[Run]:
    rounds, scores = run_file.read_rounds(place)
    groups: dict[str, list[RoundSummary]] = {}
    for summary in rounds:
        groups.setdefault(_name_of(summary), []).append(summary)
    starts = [summary.round for summary in rounds]
    names = [_name_of(summary) for summary in rounds]
    of_score = [names[max(0, bisect_right(starts, score.round - 1) - 1)] for score in scores] if rounds else []
    return [
        Run(
            name=name, folder=str(place.root), rounds=tuple(group),
            scores=tuple(score for score, run in zip(scores, of_score, strict=False) if run == name),
        )
        for name, group in groups.items()
    ]  # fmt: skip


def _name_of(summary: RoundSummary) -> str:
    """Versions before did not store it."""
    return summary.run or f"{summary.swarm or 'unnamed'}_{summary.recipe[:8] or 'first'}"


def _mean(rounds: Sequence[RoundSummary]) -> float:
    return sum(summary.reward for summary in rounds) / len(rounds) if rounds else 0.0


def _score_by(run: Run, count: int) -> float | None:
    """The share of right answers in the newest whole score that was measured after at most so many rounds of the run."""
    end = run.rounds[0].round + count
    score = next((score for score in reversed(run.scores) if score.round <= end and score.total and not score.early), None)
    return score.right / score.total if score else None
