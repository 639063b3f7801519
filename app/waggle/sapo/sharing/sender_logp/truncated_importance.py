"""Each completion of a peer counts by its truncated importance weight: its likelihood here over that at its sender.

Without the sender's log-prob the weight is 1, and the strategy does the same as `plain`.
V-trace's truncation (IMPALA, arXiv 1802.01561) at 1, once for a whole completion.
"""

import numpy as np

from waggle.rl.batch import Floats
from waggle.rl.update_rules.interface import per_token
from waggle.sapo.sharing.interface import PeerGroup, SharingStrategy
from waggle.sapo.sharing.plain import Plain


class TruncatedImportance(Plain):
    """A' = A * min(1, pi_own(completion) / pi_sender(completion)), over the whole sequence."""

    needs_logp = True

    def temper(self, peer: PeerGroup) -> Floats:
        return peer.advantage * per_token(np.exp(np.minimum(0.0, peer.log_ratios)), peer.lengths)


def make() -> SharingStrategy:
    """A strategy for one node, which remembers nothing yet."""
    return TruncatedImportance()
