"""Records a trial while it plays: curves over rounds, held-out scores, ahas. Thinned into one `results.Run`."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from waggle.practice.results import BIN, Aha, Key, Run
from waggle.rl.advantage import teaches
from waggle.sapo import first_success, stages
from waggle.sapo.evaluation import Score
from waggle.tasks.rollout_group import RIGHT

MISSING = float("nan")  # a node that did not play in a tick


class LogState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a log knows besides its arrays."""

    measured_at: tuple[int, ...]
    scores: tuple[tuple[Score, ...], ...]
    ahas: tuple[Aha, ...]


class TrialLog:
    """Sums of N nodes over R ticks. `origins` are the nodes' own, in order."""

    def __init__(self, rounds: int, datasets: Sequence[str], origins: Sequence[bytes]) -> None:
        self._datasets = list(datasets)
        self._number = {origin: i for i, origin in enumerate(origins)}
        count = len(origins)
        self._reward = np.full((count, rounds), MISSING)
        self._right = np.zeros(rounds, int)
        self._completions = np.zeros(rounds, int)
        self._specialty = np.zeros((len(datasets), rounds, 2))  # (sum of rewards, completions)
        self._share = np.full((count, rounds), MISSING)
        self._age = np.zeros((rounds, 2))  # (sum over others' groups that were trained on, their number)
        self._entropy = np.full((count, rounds), MISSING)
        self._tokens = np.zeros((rounds, 2))  # (generated, completions)
        self._form_paid = np.full((count, rounds), MISSING)
        self._measured_at: list[int] = []
        self._scores: list[Sequence[Score]] = []
        self._final: Sequence[Score] = ()
        self._ahas: list[Aha] = []

    def record_round(
        self, tick: int, member: int, judged: stages.Judged, learned: stages.Learned, ages: Sequence[int] = ()
    ) -> None:
        """Record one node's round. `ages` are the ticks since its external groups were written."""
        rewards = [reward for group in judged.groups for reward in group.rewards]
        self._reward[member, tick] = np.mean(rewards)
        self._right[tick] += sum(reward >= RIGHT for reward in rewards)
        self._completions[tick] += len(rewards)
        for group in judged.groups:
            self._specialty[self._datasets.index(group.question.dataset), tick] += (sum(group.rewards), len(group.rewards))
        self._share[member, tick] = learned.external_share
        self._age[tick] += (sum(ages), len(ages))
        self._entropy[member, tick] = judged.entropy
        self._tokens[tick] += (judged.tokens, len(rewards))
        self._form_paid[member, tick] = np.mean(
            [teaches(group.lesson_rewards) and not teaches(group.rewards) for group in judged.groups]
        )

    def record_first_successes(self, tick: int, member: int, ahas: Sequence[first_success.FirstSuccess]) -> None:
        """Record first successes of one node, by the swarm's clock."""
        for aha in ahas:
            teacher = -1 if aha.learned_from is None else self._number[aha.learned_from]
            self._ahas.append(Aha(node=member, specialty=aha.dataset, round=tick, learned_from=teacher))

    def record_scores(self, tick: int, scores: Sequence[Score]) -> None:
        """Record the held-out scores of all nodes after `tick` rounds."""
        self._measured_at.append(tick)
        self._scores.append(scores)

    def record_final_scores(self, scores: Sequence[Score]) -> None:
        """Record the scores of all nodes at the end, on more questions than the curve."""
        self._final = scores

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The numbers of all ticks, by name: the arrays themselves, no copies."""
        return {
            "reward": self._reward,
            "right": self._right,
            "completions": self._completions,
            "specialty": self._specialty,
            "share": self._share,
            "age": self._age,
            "entropy": self._entropy,
            "tokens": self._tokens,
            "form_paid": self._form_paid,
        }

    def state(self) -> LogState:
        """What `restore` takes beside `arrays`. Call it before the end: final scores are no part of it."""
        return LogState(tuple(self._measured_at), tuple(map(tuple, self._scores)), tuple(self._ahas))

    def restore(self, state: LogState, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from there. Raises KeyError, and ValueError for arrays of another trial."""
        for name, array in self.arrays.items():
            if arrays[name].shape != array.shape:
                raise ValueError(f"the log's {name} is {arrays[name].shape}, not {array.shape}")
            array[...] = arrays[name]
        self._measured_at, self._scores, self._ahas = list(state.measured_at), list(state.scores), list(state.ahas)

    @property
    def ahas(self) -> Sequence[Aha]:
        return self._ahas

    def right(self, tick: int) -> float:
        """The share of right answers in a tick."""
        return float(self._right[tick] / max(1, self._completions[tick]))

    def score(self) -> tuple[int, int]:
        """(right, total) answers of all nodes at the end."""
        return sum(score.right for score in self._final), sum(score.total for score in self._final)

    def result(
        self, key: Key, models: Sequence[str], methods: Sequence[str], specialty_counts: Sequence[int], cpu_seconds: float,
        commit: str,
    ) -> Run:  # fmt: skip
        points = range(len(self._scores))
        by_specialty = [[_share_of(scores, dataset) for scores in self._scores] for dataset in self._datasets]
        return Run(
            key=key,
            commit=commit,
            cpu_seconds=round(cpu_seconds, 1),
            models=tuple(models),
            methods=tuple(methods),
            specialties=tuple(self._datasets),
            reward=_round_all(_fill_gaps(_mean(self._reward, 0))),
            completions=tuple(int(count) for count in self._completions),
            node_reward=tuple(_round_all(_fill_gaps(_bin_means(row))) for row in self._reward),
            specialty_reward=tuple(_round_all(_fill_gaps(_ratio(rows))) for rows in self._specialty),
            external_share=_round_all(_fill_gaps(_bin_means(_mean(self._share, 0)))),
            external_age=_round_all(_fill_gaps(_ratio(self._age))),
            entropy=_round_all(_fill_gaps(_bin_means(_mean(self._entropy, 0)))),
            length=_round_all(_fill_gaps(_ratio(self._tokens))),
            form_paid=_round_all(_fill_gaps(_bin_means(_mean(self._form_paid, 0)))),
            measured_at=tuple(self._measured_at),
            held_out=tuple(
                _round_all([self._scores[p][i].right / self._scores[p][i].total for p in points]) for i in range(len(models))
            ),
            specialty_held_out=tuple(_round_all(row) for row in by_specialty),
            final=_round_all([score.right / score.total for score in self._final]),
            specialty_final=_round_all([_share_of(self._final, dataset) for dataset in self._datasets if self._final]),
            specialty_counts=tuple(specialty_counts),
            ahas=tuple(self._ahas),
        )


def _share_of(scores: Sequence[Score], dataset: str) -> float:
    counts = [score.by_dataset[dataset] for score in scores]
    return sum(right for right, _ in counts) / sum(total for _, total in counts)


def _mean(values: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """The mean over an axis without missing values; missing where all are."""
    is_present = ~np.isnan(values)
    sums = np.where(is_present, values, 0.0).sum(axis)
    means: NDArray[np.float64] = np.where(is_present.any(axis), sums / np.maximum(is_present.sum(axis), 1), MISSING)
    return means


def _bin_means(row: NDArray[np.float64]) -> NDArray[np.float64]:
    """(R,) -> (R / BIN,)."""
    parts = [row[first : first + BIN] for first in range(0, len(row), BIN)]
    return np.array([_mean(part, 0) for part in parts])


def _ratio(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """(R, 2) sums and counts -> (R / BIN,) means."""
    parts = [rows[first : first + BIN].sum(0) for first in range(0, len(rows), BIN)]
    return np.array([total / count if count else MISSING for total, count in parts])


def _fill_gaps(row: NDArray[np.float64]) -> list[float]:
    """Missing values replaced by the value before them, 0 at the beginning."""
    values: list[float] = []
    for value in row:
        values.append(values[-1] if np.isnan(value) and values else float(np.nan_to_num(value)))
    return values


def _round_all(row: Sequence[float]) -> tuple[float, ...]:
    return tuple(round(float(value), 4) for value in row)
