"""Uniform draws; of peers' completions only those that did better than their group count.

Our own.
"""

from waggle.rl.advantage import gate_external
from waggle.rl.batch import Floats
from waggle.sapo.sharing.interface import PeerGroup, Sharing
from waggle.sapo.sharing.plain import Plain


class Gated(Plain):
    """Uniform draws; of peers' completions only those that did better than their group count."""

    def temper(self, peer: PeerGroup) -> Floats:
        return gate_external(peer.advantage, peer.lengths)


def make() -> Sharing:
    return Gated()
