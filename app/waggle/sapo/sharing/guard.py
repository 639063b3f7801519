"""Shares less while the node's policy collapses: while its entropy, or its reward, is below a share of its peak.

Each such round halves J, each other round gives one place back; local groups take the empty places. Entropy is the mean surprise
(-logp) of local completions. Peaks fade, so that one lucky peak does not end sharing for good. External completions count like
local ones, as in plain SAPO: with a gate there is no collapse to notice. Our own.
"""

from dataclasses import dataclass, replace

import numpy as np

from waggle.sapo.sharing.interface import Candidates, SharingStrategy, TrainingSet, draw_uniformly
from waggle.sapo.sharing.plain import Plain

MEMORY = 0.9  # decay of the moving means, for each round
FADING = 0.998  # factor of a peak in each round: half of it is gone after about 350
ENTROPY_SHARE = 0.2  # low, for a policy that learns grows surer, too
REWARD_SHARE = 0.6
NOISE = 0.05  # a peak of reward below this means nothing


@dataclass
class Level:
    """A moving mean and its fading peak."""

    mean: float | None = None
    peak: float = 0.0

    def update(self, value: float) -> None:
        self.mean = value if self.mean is None else MEMORY * self.mean + (1 - MEMORY) * value
        self.peak = max(FADING * self.peak, self.mean)

    def is_below(self, share: float) -> bool:
        """Whether the mean is below this share of the peak."""
        return self.mean is not None and self.mean < share * self.peak


class Guard(Plain):
    """Remembers the levels of entropy and reward, and how many external groups they allow."""

    def __init__(self) -> None:
        self._entropy, self._reward = Level(), Level()
        self._allowed: int | None = None  # external groups; None: all that the settings allow

    def choose(self, candidates: Candidates) -> TrainingSet:
        self._watch(candidates)
        before = candidates.external if self._allowed is None else self._allowed
        self._allowed = before // 2 if self._collapses() else min(candidates.external, before + 1)
        withheld = candidates.external - self._allowed
        return draw_uniformly(replace(candidates, local=candidates.local + withheld, external=self._allowed))

    def _watch(self, candidates: Candidates) -> None:
        self._reward.update(float(np.mean([reward for group in candidates.local_groups for reward in group.rewards])))
        surprises = [
            -completion.logp
            for group in candidates.local_groups
            for completion in group.group.completions
            if completion.logp is not None
        ]
        if surprises:
            self._entropy.update(float(np.mean(surprises)))

    def _collapses(self) -> bool:
        return self._entropy.is_below(ENTROPY_SHARE) or (self._reward.peak >= NOISE and self._reward.is_below(REWARD_SHARE))


def make() -> SharingStrategy:
    """A strategy for one node, which remembers nothing yet."""
    return Guard()
