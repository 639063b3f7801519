"""HACPO (arXiv 2603.02604): a peer's completion counts by how able the peer is and how close its policy is to the own one.

With omega = own capability / the peer's (within .1 and 10) and s = (pi_own / pi_peer)^(1 / length), tokens of completion i get
    A_i * s^(1 + alpha) / omega  where 1 - delta <= s <= 1, else 0;   A_i = (r_i - omega * mean r) / std r
Equations 5, 6 and 56 to 59; where the baseline is above 1, the own capability replaces it, as in the authors' code. Different
here: local groups have the update rule's advantage and clip, because nodes draw different questions; the clip does not tighten
from step to step, because weights are set once a round; no KL. Capability is the mean reward of the last groups *that teach*, as
judged here: a pool holds no others. Lengths are in own tokens. Without the sender's log-prob s is 1.
"""

import msgspec
import numpy as np

from waggle.rl.batch import Floats
from waggle.rl.update_rules.interface import per_token
from waggle.sapo.sharing.interface import Candidates, Memory, PeerGroup, SharingStrategy, TrainingSet
from waggle.sapo.sharing.plain import Plain
from waggle.tasks.rollout_group import GroupKey

WINDOW, FURTHEST, OWN = 5, 10.0, b""  # rounds in the mean; bound of omega and 1 / omega; the key of the own mean
ALPHA, DELTA, EDGE = 1.0, 0.2, 1e-4  # EDGE: so that rounding does not make equal policies differ


class Rewards(Memory):
    """Mean rewards of the last rounds by origin, OWN for the node's, and the groups that were counted."""

    means: dict[bytes, list[float]] = msgspec.field(default_factory=dict)
    met: set[GroupKey] = msgspec.field(default_factory=set)


class Capability(Plain):
    """Remembers the mean rewards of each peer, and the node's own, over the last rounds."""

    needs_logp = True

    def __init__(self) -> None:
        self.memory: Rewards = Rewards()

    def choose(self, candidates: Candidates) -> TrainingSet:
        fresh = [group for group in candidates.useful(candidates.pool) if group.key not in self.memory.met]
        self.memory.met |= {group.key for group in fresh}
        groups = [(OWN, group) for group in candidates.useful(candidates.local_groups)] + [
            (group.group.origin, group) for group in fresh
        ]
        for origin in {origin for origin, _ in groups}:
            mean = float(np.mean([r for whose, group in groups if whose == origin for r in group.rewards]))
            self.memory.means[origin] = [*self.memory.means.get(origin, ()), mean][-WINDOW:]
        return super().choose(candidates)

    def temper(self, peer: PeerGroup) -> Floats:
        if not peer.advantage.any():
            return peer.advantage
        own, theirs = (float(np.mean(self.memory.means.get(origin) or [0.0])) for origin in (OWN, peer.group.group.origin))
        omega = float(np.clip(own / theirs, 1 / FURTHEST, FURTHEST)) if own and theirs else 1.0
        rewards = np.asarray(peer.group.rewards)
        baseline = omega * rewards.mean()
        advantage = (rewards - (own if baseline > 1 else baseline)) / (rewards.std(ddof=1) + 1e-6)
        return per_token(advantage * closeness(peer) ** (1 + ALPHA) / omega, peer.lengths)


def closeness(peer: PeerGroup) -> Floats:
    """s of each completion, (G,); 0 where the clip cuts it."""
    s = np.exp(np.clip(peer.log_ratios / peer.lengths, -FURTHEST, FURTHEST))
    return np.where((s >= 1 - DELTA - EDGE) & (s <= 1 + EDGE), s, 0.0).astype(np.float32)


def make() -> SharingStrategy:
    """A strategy for one node, which remembers nothing yet."""
    return Capability()
