"""SAPO as published: external groups drawn uniformly, their completions trained on like one's own."""

from waggle.rl.batch import Floats
from waggle.sapo.sharing.interface import Offer, PeerGroup, Sharing, TrainingSet, draw_uniformly


class Plain:
    """SAPO as published: uniform draws, external completions like one's own. A base for strategies that change one thing."""

    needs_logp = False

    def choose(self, offer: Offer) -> TrainingSet:
        return draw_uniformly(offer)

    def temper(self, peer: PeerGroup) -> Floats:
        return peer.advantage


def make() -> Sharing:
    return Plain()
