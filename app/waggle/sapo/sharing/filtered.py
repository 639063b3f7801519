"""Own groups that teach nothing are dropped, which makes training alone a fair control.

Meant for more `questions` than I + J and J = 0 (control "8/0-filtered"). With J > 0 external groups are drawn as in SAPO.
It is the half of DAPO's dynamic sampling that leaves groups out (arXiv 2503.14476, section 3.2). The other half, to draw more
questions until enough groups teach, is `Rule.lots` of an update rule (sapo/dynamic_sampling.py), with any strategy.
"""

from waggle.sapo.sharing.interface import Candidates, SharingStrategy, TrainingSet, draw_uniformly
from waggle.sapo.sharing.plain import Plain


class Filtered(Plain):
    """The training set is smaller if too few local groups teach."""

    def choose(self, candidates: Candidates) -> TrainingSet:
        external = draw_uniformly(candidates).external
        places = candidates.local + candidates.external - len(external)
        teaching = candidates.teaching
        local = candidates.noise.permutation(len(teaching))[:places]
        return TrainingSet(local=tuple(sorted(teaching[i] for i in local)), external=external)


def make() -> SharingStrategy:
    """A strategy for one node, which remembers nothing yet."""
    return Filtered()
