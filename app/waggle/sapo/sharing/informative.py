"""External groups with the largest variance of rewards come first: those that are near half right.

A group with one success among eight says less about a question than one with four; equal groups are drawn uniformly. Our own.
"""

import numpy as np

from waggle.sapo.sharing.gated import Gated
from waggle.sapo.sharing.interface import Offer, Sharing, TrainingSet, draw_local
from waggle.tasks.rollout_group import JudgedGroup

DIGITS = 9  # equal rewards in another order are equally informative, whatever the rounding of their sum


class Informative(Gated):
    def choose(self, offer: Offer) -> TrainingSet:
        useful = offer.useful(offer.pool)
        shuffled = [useful[i] for i in offer.noise.permutation(len(useful))]
        external = sorted(shuffled, key=variance, reverse=True)[: offer.external]
        return TrainingSet(local=draw_local(offer, len(external)), external=tuple(external))


def variance(group: JudgedGroup) -> float:
    """Of a group's rewards: p (1 - p) where they are 0 or 1."""
    return round(float(np.var(group.rewards)), DIGITS)


def make() -> Sharing:
    return Informative()
