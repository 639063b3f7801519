"""The interface of a sharing strategy: which groups a node trains on, and how strongly each external completion pulls."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from waggle.rl.advantage import teaches
from waggle.rl.batch import Floats
from waggle.tasks.rollout_group import JudgedGroup


@dataclass(frozen=True)
class Candidates:
    """What a round may train on: local groups and the pool. A strategy should choose `local` (I) and `external` (J) of them."""

    local_groups: Sequence[JudgedGroup]
    pool: Sequence[JudgedGroup]
    local: int
    external: int
    crumb_span: float  # a group whose rewards differ by less teaches nothing
    noise: np.random.Generator

    @property
    def teaching(self) -> list[int]:
        """Positions of the local groups that teach something."""
        return [i for i, group in enumerate(self.local_groups) if teaches(group.lesson_rewards, self.crumb_span)]

    def useful(self, groups: Sequence[JudgedGroup]) -> list[JudgedGroup]:
        """The groups among these that teach something."""
        return [group for group in groups if teaches(group.rewards, self.crumb_span)]


@dataclass(frozen=True)
class TrainingSet:
    """`local` holds positions in this round's local groups. `external` holds groups: of peers, or the node's own from before."""

    local: tuple[int, ...]
    external: tuple[JudgedGroup, ...]


@dataclass(frozen=True)
class PeerGroup:
    """An external group of a training set in the node's own tokens: G completions, N tokens in all."""

    group: JudgedGroup
    lengths: tuple[int, ...]  # (G,)
    advantage: Floats  # (N,) by the update rule
    logp: Floats | None  # (N,) under the node's own policy, if the strategy needs it

    @property
    def log_ratios(self) -> NDArray[np.float64]:
        """(G,) nats: the log-prob of each whole completion here minus that at its sender; 0 where one of them is unknown."""
        theirs = [completion.logp for completion in self.group.group.completions]
        if self.logp is None:
            return np.zeros(len(theirs))
        own = [float(part.sum()) for part in np.split(self.logp, np.cumsum(self.lengths)[:-1])]
        return np.array([0.0 if b is None else a - b for a, b in zip(own, theirs, strict=True)])


class Memory(msgspec.Struct):
    """What a strategy remembers from one round to the next: nothing, unless a subclass has fields.

    An unfinished run of the laboratory is saved with it, so fields have types that msgspec can read again.
    """


class SharingStrategy(Protocol):
    """One strategy. Each node has an instance of its own, so it may have a memory.

    In each round it is called once to choose, then once for each external group that it chose. If sapo/selection.py refuses
    some of these, others take their places, and `temper` is called again for all.
    """

    @property
    def needs_logp(self) -> bool:
        """Whether `temper` needs log-probs of external tokens under the local policy (one extra forward pass)."""
        ...

    @property
    def memory(self) -> Memory:
        """All that this strategy remembers. Whoever continues a run sets its fields."""
        ...

    def choose(self, candidates: Candidates) -> TrainingSet:
        """The training set of this round. All randomness comes from `candidates.noise`."""
        ...

    def temper(self, peer: PeerGroup) -> Floats:
        """The advantages (N,) that are trained on instead of `peer.advantage`.

        A published rule that changes the loss of a token returns the advantage that has the same gradient: -d(loss) / d(log pi).
        That is exact in the first step of a round. In further steps (`learning.updates`) it stays what it was before the first,
        and the update rule's ratio and clip act on top of it.
        """
        ...


def draw_uniformly(candidates: Candidates) -> TrainingSet:
    """SAPO's draw, among external groups that teach something; local groups take the places that the pool cannot fill."""
    useful = candidates.useful(candidates.pool)
    gathered = candidates.noise.permutation(len(useful))[: candidates.external]
    return TrainingSet(local=draw_local(candidates, len(gathered)), external=tuple(useful[i] for i in gathered))


def draw_local(candidates: Candidates, external: int) -> tuple[int, ...]:
    """Positions of local groups, drawn uniformly, that fill the I + J places beside `external` external ones."""
    places = min(len(candidates.local_groups), candidates.local + candidates.external - external)
    return tuple(sorted(int(i) for i in candidates.noise.permutation(len(candidates.local_groups))[:places]))
