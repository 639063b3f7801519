"""External groups with the largest variance of rewards come first: those that are about half right.

A group with one success among eight says less about a question than one with four. Ties are broken at random. Our own.
"""

import numpy as np

from waggle.sapo.sharing.gated import Gated
from waggle.sapo.sharing.interface import Candidates, SharingStrategy, TrainingSet, draw_local
from waggle.tasks.rollout_group import JudgedGroup

DIGITS = 9  # the same rewards in another order must tie, although their sums round differently


class Informative(Gated):
    """External groups by the variance of their rewards, largest first."""

    def choose(self, candidates: Candidates) -> TrainingSet:
        useful = candidates.useful(candidates.pool)
        shuffled = [useful[i] for i in candidates.noise.permutation(len(useful))]
        external = sorted(shuffled, key=variance, reverse=True)[: candidates.external]
        return TrainingSet(local=draw_local(candidates, len(external)), external=tuple(external))


def variance(group: JudgedGroup) -> float:
    """The variance of a group's rewards: p (1 - p) where they are 0 or 1."""
    return round(float(np.var(group.rewards)), DIGITS)


def make() -> SharingStrategy:
    """A strategy for one node, which remembers nothing yet."""
    return Informative()
