"""How often a node asks about each level of each specialty: more where its own groups teach, so where some answers are right.

A level of which no answer is right, or all, teaches nothing now; it is still asked about at a floor, because that can change.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from waggle.rl.advantage import teaches
from waggle.tasks.rollout_group import JudgedGroup

Level = tuple[str, int]  # dataset, and the place of the level in the charter

FLOOR = 0.5  # of an equal share, which every level keeps
MEMORY = 0.9  # of the moving mean, for each group
START = 0.5  # of a level that was not asked about yet


class QuestionMix:
    """The moving share of own groups that teach, for each level. Used in the policy thread."""

    def __init__(self, teaching: Mapping[str, float] | None = None) -> None:
        self._teaching = dict(teaching or {})

    @property
    def state(self) -> dict[str, float]:
        """What a checkpoint stores, and the constructor takes."""
        return dict(self._teaching)

    def shares(self, levels: Sequence[Level]) -> NDArray[np.float64]:
        """How often to ask about each level: (L,), with the sum 1."""
        teaching = np.array([self._teaching.get(_name(level), START) for level in levels], np.float64)
        total = teaching.sum()
        equal = np.full(len(levels), 1.0 / len(levels))
        return FLOOR * equal + (1.0 - FLOOR) * (teaching / total if total > 0 else equal)

    def update(self, groups: Iterable[JudgedGroup], crumb_span: float) -> None:
        """Take the node's own judged groups of a round into account."""
        for group in groups:
            name = _name((group.question.dataset, group.question.level))
            now = MEMORY * self._teaching.get(name, START) + (1.0 - MEMORY) * teaches(group.rewards, crumb_span)
            self._teaching[name] = round(now, 6)  # a checkpoint stores it


def _name(level: Level) -> str:
    return f"{level[0]}/{level[1]}"
