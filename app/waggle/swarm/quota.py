"""A quota: how much each peer, or address range, may ask of us, so that a flood costs its sender and nobody else."""

import time
from collections import OrderedDict
from collections.abc import Callable

from waggle.swarm.effort import Party
from waggle.swarm.sources import RELAYED

PULL_RATE, PULL_BURST = 1e6, 16e6  # bytes pulled of any one payer: many times what an honest one has to give
REMEMBERED = 4096  # peers; whoever is forgotten starts with a full bucket


class Quota:
    """A token bucket a peer: `burst` at once, `rate` a second in the long run. Belongs to one thread."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[Party, tuple[float, float]] = OrderedDict()  # who -> (left, at)

    def has(self, who: Party, cost: float = 1.0) -> bool:
        """Whether somebody may have so much now."""
        return cost <= self._left(who)

    def allows(self, who: Party, cost: float = 1.0) -> bool:
        """Whether somebody may have so much now; if so it is counted."""
        allowed = self.has(who, cost)
        self.charge(who, cost if allowed else 0.0)
        return allowed

    def charge(self, who: Party, cost: float) -> None:
        """Count so much, also where it is more than is left: that is paid off before there is any more."""
        self._buckets[who] = (self._left(who) - cost, self._clock())
        self._buckets.move_to_end(who)
        if len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)

    def _left(self, who: Party) -> float:
        now = self._clock()
        left, at = self._buckets.get(who, (self._burst, now))
        return min(self._burst, left + (now - at) * self._rate)


def all_allow(*asked: tuple[Quota, Party, float]) -> bool:
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
