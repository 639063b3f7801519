"""F-TIS (arXiv 2605.22537): truncated importance weights, and failures that are far from here do not count.

    A'_i = min(C, rho_i) A_i,   but 0 where A_i < 0 and KL_i > g
    rho_i = (pi_own(y_i) / pi_sender(y_i))^(1 / T_i),   KL_i = log pi_sender(y_i) - log pi_own(y_i)
for completion i with T_i own tokens, at each of them; C = 2, g = 50 nats a completion.

Written from published summaries of the paper, which have its loss, C and g, not from its text. Different here: the paper weighs
each token by its own ratio, but a sender with another tokenizer has other tokens. So one number for each completion travels in
the simulated swarm, and the mean ratio stands for that of each token. The summaries do not say how the paper estimates the
divergence; here the completion itself is the sample. Weights are set once, before the first step of a round. With short answers
g masks little: it is 2 nats a token for 24 tokens. Without the sender's log-prob the strategy does the same as `plain`.
"""

import math

import numpy as np

from waggle.rl.batch import Floats
from waggle.rl.update_rules.interface import per_token
from waggle.sapo.sharing.interface import PeerGroup, SharingStrategy
from waggle.sapo.sharing.plain import Plain

LARGEST = 2.0  # C, the largest weight
FARTHEST = 50.0  # g, nats of a whole completion


class FilteredTruncatedImportance(Plain):
    """Weights at most `LARGEST`; failures count up to a distance of `FARTHEST`."""

    needs_logp = True

    def temper(self, peer: PeerGroup) -> Floats:
        ratios = peer.log_ratios
        weight = per_token(np.exp(np.minimum(math.log(LARGEST), ratios / peer.lengths)), peer.lengths)
        far = np.repeat(-ratios > FARTHEST, peer.lengths)
        return np.where(far & (peer.advantage < 0), np.float32(0.0), peer.advantage * weight)


def make() -> SharingStrategy:
    """A strategy for one node, which remembers nothing yet."""
    return FilteredTruncatedImportance()
