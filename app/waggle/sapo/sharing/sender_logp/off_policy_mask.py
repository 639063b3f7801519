"""Failures of peers that are far from here do not count: the off-policy sequence mask of DeepSeek-V3.2 (arXiv 2512.02556).

    A'_i = 0   where A_i < 0 and (1 / T_i) (log pi_sender(y_i) - log pi_own(y_i)) > delta,   else A_i
for completion i with T_i own tokens, at each of them (equation 9). delta is in nats a token. TRL has the mask as
`off_policy_mask_threshold` and proposes 0.5; the paper names no number.

Different here: the mask is set once, before the first step of a round, and not again in each step. Without the sender's log-prob
nothing is masked, and the strategy does the same as `plain`.
"""

import numpy as np

from waggle.rl.batch import Floats
from waggle.sapo.sharing.interface import PeerGroup, SharingStrategy
from waggle.sapo.sharing.plain import Plain

DELTA = 0.5  # nats a token: the sender was likelier to write each token by a factor of 1.65 in the geometric mean


class OffPolicyMask(Plain):
    """Successes count in any case, failures up to a distance of `DELTA`."""

    needs_logp = True

    def temper(self, peer: PeerGroup) -> Floats:
        far = np.repeat(-peer.log_ratios / peer.lengths > DELTA, peer.lengths)
        return np.where(far & (peer.advantage < 0), np.float32(0.0), peer.advantage)


def make() -> SharingStrategy:
    """A strategy for one node, which remembers nothing yet."""
    return OffPolicyMask()
