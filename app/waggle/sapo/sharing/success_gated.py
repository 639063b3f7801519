"""Success-gated transfer (arXiv 2605.07244): only verified successes of peers count, and only where the node itself has none.

For each question that all own answers missed and a peer's did not (the "rescue set"), the objective gains the mean over tokens of
log pi(y) for each right completion y of the peer. So, at every token of completion i of G (N tokens in all),
    A'_i = 1   if the answer is right (r_i >= RIGHT) and the gate is open,   else 0
There is no baseline and no importance weight, and nothing is pushed down.

Written from the paper's abstract and its authors' summary, which have the rule in words; that the weight is 1 is our choice.
Different here: nodes draw different questions, so the gate looks at a question's level. It is open if no own answer was right in
the last round that asked about this level, or if none ever did. A pool holds only groups whose rewards differ, so groups that are
all right never come. Local groups take the places that closed gates leave.
"""

from dataclasses import replace

import msgspec
import numpy as np

from waggle.rl.batch import Floats
from waggle.rl.update_rules.interface import per_token
from waggle.sapo.sharing.interface import Candidates, Memory, PeerGroup, SharingStrategy, TrainingSet, draw_uniformly
from waggle.sapo.sharing.plain import Plain
from waggle.tasks.rollout_group import RIGHT, JudgedGroup


class Solved(Memory):
    """Whether any own answer was right when a level (dataset and level) was last asked."""

    levels: dict[tuple[str, int], bool] = msgspec.field(default_factory=dict)


class SuccessGated(Plain):
    """Remembers of each level (dataset and level) whether any own answer was right when it was last asked."""

    def __init__(self) -> None:
        self.memory: Solved = Solved()

    def choose(self, candidates: Candidates) -> TrainingSet:
        latest: dict[tuple[str, int], bool] = {}
        for group in candidates.local_groups:
            latest[_level(group)] = latest.get(_level(group), False) or _any_right(group)
        self.memory.levels |= latest
        return draw_uniformly(replace(candidates, pool=[group for group in candidates.pool if self._rescues(group)]))

    def temper(self, peer: PeerGroup) -> Floats:
        if not peer.advantage.any() or not self._rescues(peer.group):
            return np.zeros_like(peer.advantage)
        return per_token([float(reward >= RIGHT) for reward in peer.group.rewards], peer.lengths)

    def _rescues(self, group: JudgedGroup) -> bool:
        return _any_right(group) and not self.memory.levels.get(_level(group), False)


def _level(group: JudgedGroup) -> tuple[str, int]:
    return group.group.id.dataset, group.group.id.level


def _any_right(group: JudgedGroup) -> bool:
    return max(group.rewards) >= RIGHT


def make() -> SharingStrategy:
    """A strategy for one node, which remembers nothing yet."""
    return SuccessGated()
