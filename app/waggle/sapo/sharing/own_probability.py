"""Peers' failures are pushed down only as far as they are likely here: by the local policy's probability of each token.

A token that the local policy hardly ever writes needs no pushing down; plain SAPO pushes it as hard as any other. Our own.
"""

import numpy as np

from waggle.rl.batch import Floats
from waggle.sapo.sharing.interface import PeerGroup, SharingStrategy
from waggle.sapo.sharing.plain import Plain


class OwnProbability(Plain):
    """A' = A * pi(token) where A < 0, else A."""

    needs_logp = True

    def temper(self, peer: PeerGroup) -> Floats:
        if peer.logp is None:
            return peer.advantage
        return np.where(peer.advantage < 0, peer.advantage * np.exp(peer.logp), peer.advantage).astype(np.float32)


def make() -> SharingStrategy:
    """A strategy for one node, which remembers nothing yet."""
    return OwnProbability()
