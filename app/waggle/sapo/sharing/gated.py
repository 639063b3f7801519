"""Uniform draws; of peers' completions, only those with a better reward than their group's mean count.

Our own: pushing down texts that are unlikely here already made plain SAPO collapse (see rl/advantage.py).
"""

from waggle.rl.advantage import gate_external
from waggle.rl.batch import Floats
from waggle.sapo.sharing.interface import PeerGroup, SharingStrategy
from waggle.sapo.sharing.plain import Plain


class Gated(Plain):
    """Weight 0 for external completions with a negative advantage. A base for strategies that choose differently."""

    def temper(self, peer: PeerGroup) -> Floats:
        return gate_external(peer.advantage, peer.lengths)


def make() -> SharingStrategy:
    """A strategy for one node, which remembers nothing yet."""
    return Gated()
