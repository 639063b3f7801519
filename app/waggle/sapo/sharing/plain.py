"""SAPO as published: external groups are drawn uniformly, and their completions count like local ones."""

from waggle.rl.batch import Floats
from waggle.sapo.sharing.interface import Candidates, Memory, PeerGroup, SharingStrategy, TrainingSet, draw_uniformly


class Plain:
    """Uniform draws, every completion counts. A base for strategies that change one of the two."""

    needs_logp = False
    memory: Memory = Memory()

    def choose(self, candidates: Candidates) -> TrainingSet:
        return draw_uniformly(candidates)

    def temper(self, peer: PeerGroup) -> Floats:
        return peer.advantage


def make() -> SharingStrategy:
    """A strategy for one node, which remembers nothing yet."""
    return Plain()
