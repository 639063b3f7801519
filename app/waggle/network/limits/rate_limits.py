"""A quota: how much each peer, or address range, may ask of us, so that a flood costs its sender and nobody else."""

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from typing import TypeVar

from waggle.network.limits.address_ranges import HIDDEN, RELAYED
from waggle.tasks.rollout_group import NEWCOMERS

Party = str | bytes  # whoever is counted together: an address range, a crowd, one peer
Key = TypeVar("Key")
Payers = tuple[Party, Party]  # who answers for something, and all together with whom it does

PULL_RATE, PULL_BURST = 0.5e6, 8e6  # bytes pulled of one payer: many times what an honest one has to give
WORK_RATE, WORK_BURST = 1 / 20, 2.0  # seconds of the verifier's: an honest record takes a twentieth of one
TOGETHER = 4.0  # times as much of both: all from one place
FRIENDS = frozenset({f"trusted {RELAYED}", f"trusted {NEWCOMERS}"})  # those trusted who are of no address range, unless gone
MORE = 2.5  # times as much as any other crowd, for these: half of the verifier's time
LITTLE = 64  # parts of what all of a crowd may have, one of which a peer may have before it counts as greedy
REMEMBERED = 4096  # peers; whoever is forgotten starts with a full bucket


def of_largest_holder(holdings: Iterable[tuple[Key, Party, int]]) -> list[Key]:
    """All that belongs to whoever has most, in its order; of each thing, to whom it belongs and how much it is.

    Where room is short, it gives way: neither a flood nor a crowd pushes others out.
    """
    things, sums = list(holdings), Counter[Party]()
    for _, owner, size in things:
        sums[owner] += size
    ((most, _),) = sums.most_common(1)
    return [key for key, owner, _ in things if owner == most]


class RateLimit:
    """A token bucket a peer: `burst` at once, `rate` a second in the long run. Belongs to one thread."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[Party, tuple[float, float]] = OrderedDict()  # who -> (left, at)

    def has(self, who: Party, cost: float = 1.0) -> bool:
        """Whether somebody may have so much now."""
        return cost <= self._balance(who)

    def allows(self, who: Party, cost: float = 1.0) -> bool:
        """Whether somebody may have so much now; if so it is counted."""
        allowed = self.has(who, cost)
        self.charge(who, cost if allowed else 0.0)
        return allowed

    def charge(self, who: Party, cost: float) -> None:
        """Count so much, also where it is more than is left: that is paid off before there is any more."""
        self._buckets[who] = (self._balance(who) - cost, self._clock())
        self._buckets.move_to_end(who)
        if len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)

    def _balance(self, who: Party) -> float:
        now = self._clock()
        balance, at = self._buckets.get(who, (self._burst, now))
        return min(self._burst, balance + (now - at) * self._rate)


def all_allow(*charges: tuple[RateLimit, Party, float]) -> bool:
    """Whether each of these quotas has so much left for whom it is asked; it is counted in all of them, or in none."""
    allowed = all(quota.has(who, cost) for quota, who, cost in charges)
    for quota, who, cost in charges if allowed else ():
        quota.allows(who, cost)
    return allowed


class JointRateLimit:
    """A quota of each payer, and `times` as much of all together with whom it pays. Paid for afterwards, by both.

    So whoever took too much rests by itself first, and a crowd of made-up names rests as a whole.
    """

    def __init__(self, rate: float, burst: float, times: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._own, self._all = RateLimit(rate, burst, clock), RateLimit(times * rate, times * burst, clock)

    def has(self, payers: Payers) -> bool:
        """Whether neither has to pay off anything first."""
        own, together = payers
        return self._own.has(own, 0) and self._all.has(together, 0)

    def charge(self, payers: Payers, cost: float) -> None:
        """Count so much, which may be more than is left."""
        own, together = payers
        self._own.charge(own, cost)
        self._all.charge(together, cost / MORE if together in FRIENDS else cost)


class PeerRateLimits:
    """What peers have had: bytes pulled of them, and the verifier's seconds. Nobody knows either before it is spent."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.pulls = JointRateLimit(PULL_RATE, PULL_BURST, TOGETHER, clock)
        self.work = JointRateLimit(WORK_RATE, WORK_BURST, TOGETHER, clock)

    def rest(self, payers: Payers) -> bool:
        """Whether they have had their part of either."""
        return not (self.pulls.has(payers) and self.work.has(payers))


class AddressRangeRateLimit:
    """The same for address ranges. Peers of no range count as one, whoever they are: all relayed ones, and all hidden ones.

    There, a peer has a quarter at most, and half of what is there is kept for whoever had little lately: a seed has room for
    so many relayed names that together they hardly have more than is meant for such. So a few greedy ones shut out nobody.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._ranges = RateLimit(rate, burst, clock)
        self._quarters = RateLimit(rate / 4, burst / 4, clock)
        self._little, self._reserve = RateLimit(rate / LITTLE, burst / LITTLE, clock), burst / 2

    def allows(self, peer_id: bytes, source: str, cost: float) -> bool:
        """Whether a peer that comes from `source` (empty: counts for itself) may have so much now; if so it is counted."""
        if source not in (RELAYED, HIDDEN):
            return self._ranges.allows(source.encode() or peer_id, cost)
        reserve = 0.0 if self._little.has(peer_id, cost) else self._reserve
        if not self._ranges.has(source, reserve + cost) or not self._quarters.allows(peer_id, cost):
            return False
        self._ranges.charge(source, cost)
        self._little.charge(peer_id, cost)
        return True
