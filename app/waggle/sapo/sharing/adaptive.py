"""I and J follow what can be learned: local groups that teach nothing give way to external ones that do.

Waggle's default. Our own.
"""

from waggle.sapo.sharing.gated import Gated
from waggle.sapo.sharing.interface import Candidates, SharingStrategy, TrainingSet


class Adaptive(Gated):
    """Local groups that teach nothing give their places to external groups that do.

    If no local group teaches, all I + J groups may be external; if the pool is empty, or J is 0, all are local.
    """

    def choose(self, candidates: Candidates) -> TrainingSet:
        order = [int(i) for i in candidates.noise.permutation(len(candidates.local_groups))]
        positions = candidates.teaching
        teaching = [i for i in order if i in positions]
        idle = [i for i in order if i not in teaching]
        places = candidates.local + candidates.external
        useful = candidates.useful(candidates.pool) if candidates.external else []
        gathered = candidates.noise.permutation(len(useful))[: places - min(candidates.local, len(teaching))]
        local = (teaching + idle)[: places - len(gathered)]
        return TrainingSet(local=tuple(sorted(local)), external=tuple(useful[i] for i in gathered))


def make() -> SharingStrategy:
    """A strategy for one node, which remembers nothing yet."""
    return Adaptive()
