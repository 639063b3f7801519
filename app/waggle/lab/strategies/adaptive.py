"""I and J follow what there is to learn: own groups that teach nothing give their places to external ones that teach.

Where nothing own teaches, all I + J groups may come from peers; where the pool is empty, all are one's own.
"""

from waggle.rl.advantage import teaches
from waggle.sapo.sharing import Gated, Offer, Sharing, TrainingSet


class Adaptive(Gated):
    """I own groups at most are safe from being replaced: those that teach."""

    def choose(self, offer: Offer) -> TrainingSet:
        order = [int(i) for i in offer.noise.permutation(len(offer.own))]
        teaching = [i for i in order if teaches(offer.own[i].rewards, offer.crumb_span)]
        idle = [i for i in order if i not in teaching]
        places = offer.local + offer.external
        useful = offer.useful(offer.pool)
        gathered = offer.noise.permutation(len(useful))[: places - min(offer.local, len(teaching))]
        local = (teaching + idle)[: places - len(gathered)]
        return TrainingSet(local=tuple(sorted(local)), external=tuple(useful[i] for i in gathered))


def make() -> Sharing:
    return Adaptive()
