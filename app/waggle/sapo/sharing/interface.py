"""What a sharing strategy is: which groups a node trains on, and how strongly each completion of a peer pulls."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from waggle.rl.advantage import teaches
from waggle.rl.batch import Floats
from waggle.tasks.rollout_group import JudgedGroup


@dataclass(frozen=True)
class Offer:
    """What a round may train on: this round's own groups and the pool; `local` (I) and `external` (J) of them are asked for."""

    own: Sequence[JudgedGroup]
    pool: Sequence[JudgedGroup]
    local: int
    external: int
    crumb_span: float  # a group whose rewards differ by less teaches nothing
    noise: np.random.Generator

    @property
    def teaching(self) -> list[int]:
        """Positions of the own groups that teach something."""
        return [i for i, group in enumerate(self.own) if teaches(group.rewards, self.crumb_span)]

    def useful(self, groups: Sequence[JudgedGroup]) -> list[JudgedGroup]:
        """Those that teach something."""
        return [group for group in groups if teaches(group.rewards, self.crumb_span)]


@dataclass(frozen=True)
class TrainingSet:
    """`local` holds positions in this round's own groups; `external` groups themselves: peers', or one's own from before."""

    local: tuple[int, ...]
    external: tuple[JudgedGroup, ...]


@dataclass(frozen=True)
class PeerGroup:
    """An external group of a training set in one's own tokens: G completions, N tokens in all."""

    group: JudgedGroup
    lengths: tuple[int, ...]  # (G,)
    advantage: Floats  # (N,) by the update rule
    logp: Floats | None  # (N,) under one's own policy, where the strategy asks for it


class Sharing(Protocol):
    """One strategy. Made anew for each node, so it may remember. Each round it chooses once, and then tempers what it chose.

    Where some of that is refused, others take its place, and all of it is tempered again.
    """

    @property
    def needs_logp(self) -> bool:
        """Whether `temper` wants to know how likely external tokens are here: one more forward pass over them."""
        ...

    def choose(self, offer: Offer) -> TrainingSet: ...

    def temper(self, peer: PeerGroup) -> Floats:
        """The advantages (N,) that are trained on instead of `peer.advantage`."""
        ...


def draw_uniformly(offer: Offer) -> TrainingSet:
    """External groups that teach nothing are dropped first; where the pool is short, own groups take the empty places."""
    useful = offer.useful(offer.pool)
    gathered = offer.noise.permutation(len(useful))[: offer.external]
    return TrainingSet(local=draw_local(offer, len(gathered)), external=tuple(useful[i] for i in gathered))


def draw_local(offer: Offer, external: int) -> tuple[int, ...]:
    """Positions of own groups, drawn uniformly, that fill I + J places beside so many external ones."""
    places = min(len(offer.own), offer.local + offer.external - external)
    return tuple(sorted(int(i) for i in offer.noise.permutation(len(offer.own))[:places]))
