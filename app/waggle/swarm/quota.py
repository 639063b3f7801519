"""A quota: how much each peer, or address range, may ask of us, so that a flood costs its sender and nobody else."""

import time
from collections import OrderedDict
from collections.abc import Callable

from waggle.swarm.sources import RELAYED

REMEMBERED = 4096  # peers; whoever is forgotten starts with a full bucket


class Quota:
    """A token bucket a peer: `burst` at once, `rate` a second in the long run. Belongs to one thread."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()  # peer id -> (left, at)

    def has(self, peer_id: bytes, cost: float = 1.0) -> bool:
        """Whether the peer may have so much now."""
        return cost <= self._left(peer_id)

    def allows(self, peer_id: bytes, cost: float = 1.0) -> bool:
        """Whether the peer may have so much now; if so it is counted."""
        left = self._left(peer_id)
        allowed = cost <= left
        self._buckets[peer_id] = (left - cost if allowed else left, self._clock())
        self._buckets.move_to_end(peer_id)
        if len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)
        return allowed

    def _left(self, peer_id: bytes) -> float:
        now = self._clock()
        left, at = self._buckets.get(peer_id, (self._burst, now))
        return min(self._burst, left + (now - at) * self._rate)


def all_allow(*asked: tuple[Quota, bytes, float]) -> bool:
    """Whether each of these quotas has so much left for whom it is asked; it is counted in all of them, or in none."""
    allowed = all(quota.has(who, cost) for quota, who, cost in asked)
    for quota, who, cost in asked if allowed else ():
        quota.allows(who, cost)
    return allowed


class Shares:
    """The same for address ranges. All relayed peers count as one, whoever they are: there, a peer has a quarter at most."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._ranges = Quota(rate, burst, clock)
        self._relayed = Quota(rate / 4, burst / 4, clock)

    def allows(self, peer_id: bytes, source: str, cost: float) -> bool:
        """Whether a peer that comes from `source` (empty: counts for itself) may have so much now; if so it is counted."""
        of_range = (self._ranges, source.encode() or peer_id, cost)
        return all_allow(of_range, (self._relayed, peer_id, cost)) if source == RELAYED else all_allow(of_range)
