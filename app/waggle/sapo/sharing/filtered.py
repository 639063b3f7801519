"""Own groups that teach nothing are dropped: DAPO's dynamic sampling, which makes training alone a fair control.

Meant for more `questions` than I + J and J = 0 (control "8/0-filtered"). With J > 0 external groups are drawn as in SAPO.
Left out: drawing more questions until enough groups teach (arXiv 2503.14476, section 3.2); their number is fixed.
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
