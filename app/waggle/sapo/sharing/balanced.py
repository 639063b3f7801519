"""External groups come from the specialties in which the node's own recent reward is lowest, in turn.

The weakest specialty gives a group first, then the next, and so on round and round, so that none takes all places. Our own.
"""

import msgspec

from waggle.sapo.sharing.gated import Gated
from waggle.sapo.sharing.interface import Candidates, Memory, SharingStrategy, TrainingSet, draw_local
from waggle.tasks.rollout_group import JudgedGroup

DECAY = 0.8  # of the moving mean of the node's reward in a specialty, for each group


class Rewards(Memory):
    """Moving means of the node's own reward, by dataset."""

    means: dict[str, float] = msgspec.field(default_factory=dict)


class Balanced(Gated):
    """Remembers the node's own reward in each specialty; one that it never asked about counts 0, so it comes first."""

    def __init__(self) -> None:
        self.memory: Rewards = Rewards()

    def choose(self, candidates: Candidates) -> TrainingSet:
        for group in candidates.local_groups:
            self._remember(group)
        useful = candidates.useful(candidates.pool)
        turns: dict[str, int] = {}  # groups of a specialty so far
        ordered: list[tuple[int, float, JudgedGroup]] = []
        for i in candidates.noise.permutation(len(useful)):
            dataset = useful[i].question.dataset
            ordered.append((turns.get(dataset, 0), self.memory.means.get(dataset, 0.0), useful[i]))
            turns[dataset] = turns.get(dataset, 0) + 1
        ordered.sort(key=lambda each: each[:2])
        external = tuple(group for _, _, group in ordered[: candidates.external])
        return TrainingSet(local=draw_local(candidates, len(external)), external=external)

    def _remember(self, group: JudgedGroup) -> None:
        mean = sum(group.rewards) / len(group.rewards)
        before = self.memory.means.get(group.question.dataset, mean)
        self.memory.means[group.question.dataset] = DECAY * before + (1 - DECAY) * mean


def make() -> SharingStrategy:
    """A strategy for one node, which remembers nothing yet."""
    return Balanced()
