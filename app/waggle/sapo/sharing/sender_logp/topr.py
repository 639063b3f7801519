"""TOPR (arXiv 2503.14286): successes count in full, failures by their truncated importance weight.

    A'_i = A_i                                            where A_i >= 0
    A'_i = A_i min(1, pi_own(y_i) / pi_sender(y_i))       where A_i < 0
with the probabilities of the whole completion y_i, at each of its tokens: the paper's tapered gradient with the range [0, 1] for
failures (equations 7 and 8). Its reward, which may have a baseline, is the advantage here. So a failure that this policy has
stopped writing is pushed down no further, and a success is learned however unlikely it is.

Different here: the weight is set once, before the first step of a round, where the paper takes it again at each step, and the
update rule's clip acts in further steps, where the paper has none. Without the sender's log-prob the weight is 1, and the
strategy does the same as `plain`.
"""

import numpy as np

from waggle.rl.batch import Floats
from waggle.rl.update_rules.interface import per_token
from waggle.sapo.sharing.interface import PeerGroup, SharingStrategy
from waggle.sapo.sharing.plain import Plain


class Topr(Plain):
    """As `truncated_importance`, for failures only."""

    needs_logp = True

    def temper(self, peer: PeerGroup) -> Floats:
        weight = per_token(np.exp(np.minimum(0.0, peer.log_ratios)), peer.lengths)
        return np.where(peer.advantage < 0, peer.advantage * weight, peer.advantage)


def make() -> SharingStrategy:
    """A strategy for one node, which remembers nothing yet."""
    return Topr()
