"""Shares less while one's own policy collapses: when its entropy, or its reward, falls under a share of its peak.

Each such round halves J, each calm one gives a place back; own groups take the empty places. Entropy is the mean surprise
(-logp) of one's own completions. Peaks fade, so that a lucky one does not end sharing for good. What it takes it believes,
like plain SAPO: the gate leaves it nothing to notice. Our own.
"""

from dataclasses import dataclass, replace

import numpy as np

from waggle.sapo.sharing.interface import Offer, Sharing, TrainingSet, draw_uniformly
from waggle.sapo.sharing.plain import Plain

MEMORY = 0.9  # of the moving means
FADING = 0.998  # of a peak a round: half of it in about 350
ENTROPY_SHARE = 0.2  # a policy that learns grows surer; one that collapses has nothing left to say
REWARD_SHARE = 0.6
NOISE = 0.05  # a peak of reward below this says nothing


@dataclass
class Level:
    """A moving mean and its fading peak."""

    mean: float | None = None
    peak: float = 0.0

    def see(self, value: float) -> None:
        self.mean = value if self.mean is None else MEMORY * self.mean + (1 - MEMORY) * value
        self.peak = max(FADING * self.peak, self.mean)

    def fell(self, share: float) -> bool:
        return self.mean is not None and self.mean < share * self.peak


class Guard(Plain):
    def __init__(self) -> None:
        self._entropy, self._reward = Level(), Level()
        self._allowed: int | None = None  # external groups; None: as many as asked for

    def choose(self, offer: Offer) -> TrainingSet:
        self._watch(offer)
        before = offer.external if self._allowed is None else self._allowed
        self._allowed = before // 2 if self._collapses() else min(offer.external, before + 1)
        withheld = offer.external - self._allowed
        return draw_uniformly(replace(offer, local=offer.local + withheld, external=self._allowed))

    def _watch(self, offer: Offer) -> None:
        self._reward.see(float(np.mean([reward for group in offer.own for reward in group.rewards])))
        surprises = [
            -completion.logp for group in offer.own for completion in group.group.completions if completion.logp is not None
        ]
        if surprises:
            self._entropy.see(float(np.mean(surprises)))

    def _collapses(self) -> bool:
        return self._entropy.fell(ENTROPY_SHARE) or (self._reward.peak >= NOISE and self._reward.fell(REWARD_SHARE))


def make() -> Sharing:
    return Guard()
