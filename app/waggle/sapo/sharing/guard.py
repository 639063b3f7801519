"""Shares less while the node's policy collapses: while its entropy, or its reward, is below a share of its peak.

Each such round halves J, each other round gives one place back; local groups take the empty places. Entropy is the mean surprise
(-logp) of local completions. Peaks fade, so that one lucky peak does not end sharing for good. External completions count like
local ones, as in plain SAPO: with a gate there is no collapse to notice. Our own.
"""

from dataclasses import replace

import msgspec
import numpy as np

from waggle.sapo.sharing.interface import Candidates, Memory, SharingStrategy, TrainingSet, draw_uniformly
from waggle.sapo.sharing.plain import Plain

DECAY = 0.9  # of the moving means, for each round
FADING = 0.998  # factor of a peak in each round: half of it is gone after about 350
ENTROPY_SHARE = 0.2  # low, for a policy that learns grows surer, too
REWARD_SHARE = 0.6
NOISE = 0.05  # a peak of reward below this means nothing


class Level(msgspec.Struct):
    """A moving mean and its fading peak."""

    mean: float | None = None
    peak: float = 0.0

    def update(self, value: float) -> None:
        self.mean = value if self.mean is None else DECAY * self.mean + (1 - DECAY) * value
        self.peak = max(FADING * self.peak, self.mean)

    def is_below(self, share: float) -> bool:
        """Whether the mean is below this share of the peak."""
        return self.mean is not None and self.mean < share * self.peak


class Watch(Memory):
    """The levels of entropy and reward, and the external groups that they allow; None: all that the settings allow."""

    entropy: Level = msgspec.field(default_factory=Level)
    reward: Level = msgspec.field(default_factory=Level)
    external: int | None = None


class Guard(Plain):
    """Remembers the levels of entropy and reward, and how many external groups they allow."""

    def __init__(self) -> None:
        self.memory: Watch = Watch()

    def choose(self, candidates: Candidates) -> TrainingSet:
        self._watch(candidates)
        before = candidates.external if self.memory.external is None else self.memory.external
        external = before // 2 if self._collapses() else min(candidates.external, before + 1)
        self.memory.external, withheld = external, candidates.external - external
        return draw_uniformly(replace(candidates, local=candidates.local + withheld, external=external))

    def _watch(self, candidates: Candidates) -> None:
        self.memory.reward.update(float(np.mean([reward for group in candidates.local_groups for reward in group.rewards])))
        surprises = [
            -completion.logp
            for group in candidates.local_groups
            for completion in group.group.completions
            if completion.logp is not None
        ]
        if surprises:
            self.memory.entropy.update(float(np.mean(surprises)))

    def _collapses(self) -> bool:
        entropy, reward = self.memory.entropy, self.memory.reward
        return entropy.is_below(ENTROPY_SHARE) or (reward.peak >= NOISE and reward.is_below(REWARD_SHARE))


def make() -> SharingStrategy:
    """A strategy for one node, which remembers nothing yet."""
    return Guard()
