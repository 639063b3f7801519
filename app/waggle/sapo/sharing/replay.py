"""Rare successes are remembered, local and external ones, and up to two of them are trained on again each round.

They take external places. An old local group comes back like a peer's: encoded from its text, and gated. Our own.
"""

from dataclasses import replace

import msgspec

from waggle.sapo.sharing.gated import Gated
from waggle.sapo.sharing.interface import Candidates, Memory, SharingStrategy, TrainingSet, draw_uniformly
from waggle.tasks.rollout_group import RIGHT, JudgedGroup

REMEMBERED = 64  # groups; the oldest are forgotten first
REPLAYED = 2  # groups in each round
FEW = 3  # right answers that a rare success has at most


class RareSuccesses(Memory):
    """The last rare successes, oldest first."""

    groups: list[JudgedGroup] = msgspec.field(default_factory=list)


class Replay(Gated):
    """A group may come back in any later round, and more than once."""

    def __init__(self) -> None:
        self.memory: RareSuccesses = RareSuccesses()

    def choose(self, candidates: Candidates) -> TrainingSet:
        rare = self.memory.groups
        number = min(REPLAYED, candidates.external, len(rare))
        replayed = [rare[i] for i in candidates.noise.permutation(len(rare))[:number]]
        fresh = draw_uniformly(replace(candidates, external=candidates.external - number))
        rare += [group for group in candidates.useful((*candidates.local_groups, *fresh.external)) if is_rare(group)]
        del rare[:-REMEMBERED]
        return TrainingSet(local=fresh.local, external=(*replayed, *fresh.external))


def is_rare(group: JudgedGroup) -> bool:
    """Whether a few of the answers are right."""
    return 1 <= sum(reward >= RIGHT for reward in group.rewards) <= FEW


def make() -> SharingStrategy:
    """A strategy for one node, which remembers nothing yet."""
    return Replay()
