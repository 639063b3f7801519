"""Rare successes are kept, one's own and peers', and up to two of them are trained on again each round.

They take external places. One's own old group comes back as an external one: re-encoded, and gated like a peer's. Our own.
"""

from collections import deque
from dataclasses import replace

from waggle.sapo.sharing.gated import Gated
from waggle.sapo.sharing.interface import Offer, Sharing, TrainingSet, draw_uniformly
from waggle.tasks.rollout_group import RIGHT, JudgedGroup

MEMORY = 64  # groups; the oldest goes first
REPLAYED = 2  # a round
FEW = 3  # right answers at most, or it is no rare success


class Replay(Gated):
    """A group can come back from the round after it was seen on, and more than once."""

    def __init__(self) -> None:
        self._rare: deque[JudgedGroup] = deque(maxlen=MEMORY)

    def choose(self, offer: Offer) -> TrainingSet:
        number = min(REPLAYED, offer.external, len(self._rare))
        replayed = [self._rare[i] for i in offer.noise.permutation(len(self._rare))[:number]]
        fresh = draw_uniformly(replace(offer, external=offer.external - number))
        self._rare.extend(group for group in offer.useful((*offer.own, *fresh.external)) if is_rare(group))
        return TrainingSet(local=fresh.local, external=(*replayed, *fresh.external))


def is_rare(group: JudgedGroup) -> bool:
    """Whether somebody got it right, but few did."""
    return 1 <= sum(reward >= RIGHT for reward in group.rewards) <= FEW


def make() -> Sharing:
    return Replay()
