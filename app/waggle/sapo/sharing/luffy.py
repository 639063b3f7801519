"""LUFFY (arXiv 2504.14945): policy shaping. A peer's token counts most where it is unlikely here, but not hopeless.

The loss of a peer's token is -A f(p) with p = pi(token) here and f(p) = p / (p + gamma), gamma = 0.1, where importance sampling
would have -A pi / pi_sender: the paper takes the sender's probability for 1 and does not clip ("Policy Shaping via Regularized
Importance Sampling", and the authors' code). Its gradient is -A f'(p) p grad log p, so that
    A'_t = A_t gamma p_t / (p_t + gamma)^2
for each token t (A and p are (N,)). That is at most A / 4, at p = gamma, and falls to 0 towards p = 0 and towards p = 1.

Different here: A is that of the peer's group alone, because nodes draw different questions (the paper mixes own and foreign
answers to one question), and own completions are clipped as the update rule says (the paper's are not). In further steps of a
round, inside the clip, the paper's weight is (p_start + gamma)^2 / (p + gamma)^2 times this one, which is that of its start.
"""

import numpy as np

from waggle.rl.batch import Floats
from waggle.sapo.sharing.interface import PeerGroup, SharingStrategy
from waggle.sapo.sharing.plain import Plain

GAMMA = 0.1  # the paper's


class Luffy(Plain):
    """A' = A gamma p / (p + gamma)^2 for successes and failures alike; without log-probs A' = A."""

    needs_logp = True

    def temper(self, peer: PeerGroup) -> Floats:
        if peer.logp is None:
            return peer.advantage
        p = np.exp(peer.logp)
        return (peer.advantage * (GAMMA * p / (p + GAMMA) ** 2)).astype(np.float32)


def make() -> SharingStrategy:
    """A strategy for one node, which remembers nothing yet."""
    return Luffy()
