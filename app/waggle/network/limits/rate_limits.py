"""Rate limits: how much each peer, or address range, may cost this node, so that a flood costs only its sender."""

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from typing import TypeVar

from waggle.network.limits.address_ranges import HIDDEN, RELAYED
from waggle.tasks.rollout_group import NEWCOMERS

Party = str | bytes  # what is counted together: an address range, a crowd, or one peer
Key = TypeVar("Key")
Payers = tuple[Party, Party]  # who pays, and the crowd that pays with it

PULL_RATE, PULL_BURST = 0.5e6, 8e6  # bytes pulled of one payer: many times what an honest one publishes
WORK_RATE, WORK_BURST = 1 / 20, 2.0  # seconds of the verifier: an honest record takes a twentieth of one
TOGETHER = 4.0  # a crowd has this many times the limit of one payer
FRIENDS = frozenset({f"trusted {RELAYED}", f"trusted {NEWCOMERS}"})  # crowds of trusted peers without an address range
MORE = 2.5  # times as much as any other crowd for FRIENDS: half of the verifier's time
LITTLE = 64  # a peer that took more than one such part of a crowd's burst counts as greedy
REMEMBERED = 4096  # peers; a forgotten one starts with a full bucket


def of_largest_holder(holdings: Iterable[tuple[Key, Party, int]]) -> list[Key]:
    """The keys of the party that holds most, in their order; each holding is (key, party, size).

    If room is short, this party gives way, so neither a flood nor a crowd pushes others out.
    """
    things, sums = list(holdings), Counter[Party]()
    for _, owner, size in things:
        sums[owner] += size
    ((most, _),) = sums.most_common(1)
    return [key for key, owner, _ in things if owner == most]


class RateLimit:
    """A token bucket for each peer: `burst` at once, `rate` per second in the long run. Belongs to one thread."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[Party, tuple[float, float]] = OrderedDict()  # party -> (balance, when)

    def has(self, party: Party, cost: float = 1.0) -> bool:
        """Whether the party can pay this cost now."""
        return cost <= self._balance(party)

    def allows(self, party: Party, cost: float = 1.0) -> bool:
        """Whether the party can pay this cost now; if so it is charged."""
        allowed = self.has(party, cost)
        self.charge(party, cost if allowed else 0.0)
        return allowed

    def charge(self, party: Party, cost: float) -> None:
        """Charge a cost, even beyond the balance: the party then waits until that is paid off."""
        self._buckets[party] = (self._balance(party) - cost, self._clock())
        self._buckets.move_to_end(party)
        if len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)

    def _balance(self, party: Party) -> float:
        now = self._clock()
        balance, at = self._buckets.get(party, (self._burst, now))
        return min(self._burst, balance + (now - at) * self._rate)


def all_allow(*charges: tuple[RateLimit, Party, float]) -> bool:
    """Whether every limit lets its party pay its cost; then all are charged, else none."""
    allowed = all(limit.has(party, cost) for limit, party, cost in charges)
    for limit, party, cost in charges if allowed else ():
        limit.allows(party, cost)
    return allowed


class JointRateLimit:
    """A rate limit for each payer, and one of `times` as much for its crowd. Both are charged afterwards.

    A payer that took too much rests by itself first; a crowd of made-up names rests as a whole.
    """

    def __init__(self, rate: float, burst: float, times: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._own, self._crowd = RateLimit(rate, burst, clock), RateLimit(times * rate, times * burst, clock)

    def has(self, payers: Payers) -> bool:
        """Whether neither the payer nor its crowd has anything to pay off first."""
        own, crowd = payers
        return self._own.has(own, 0) and self._crowd.has(crowd, 0)

    def charge(self, payers: Payers, cost: float) -> None:
        """Charge a cost, even beyond the balance."""
        own, crowd = payers
        self._own.charge(own, cost)
        self._crowd.charge(crowd, cost / MORE if crowd in FRIENDS else cost)


class PeerRateLimits:
    """The limits on bytes pulled of peers, and on the verifier's seconds for them. Both are known only after they are spent."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.pulls = JointRateLimit(PULL_RATE, PULL_BURST, TOGETHER, clock)
        self.work = JointRateLimit(WORK_RATE, WORK_BURST, TOGETHER, clock)

    def used_up(self, payers: Payers) -> bool:
        """Whether the payers have used up their share of either."""
        return not (self.pulls.has(payers) and self.work.has(payers))


class AddressRangeRateLimit:
    """A rate limit for each address range. Peers without a range count as one: all relayed ones, and all hidden ones.

    Of such a crowd's share one peer gets at most a quarter, and half is reserved for peers that took little lately: a seed has so
    many relayed peers that together they hardly take more than that. So a few greedy peers cannot shut out the others.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._ranges = RateLimit(rate, burst, clock)
        self._quarters = RateLimit(rate / 4, burst / 4, clock)
        self._little, self._reserve = RateLimit(rate / LITTLE, burst / LITTLE, clock), burst / 2

    def allows(self, peer_id: bytes, source: str, cost: float) -> bool:
        """Whether a peer from the address range `source` (empty: it counts for itself) can pay now; if so it is charged."""
        if source not in (RELAYED, HIDDEN):
            return self._ranges.allows(source.encode() or peer_id, cost)
        reserve = 0.0 if self._little.has(peer_id, cost) else self._reserve
        if not self._ranges.has(source, reserve + cost) or not self._quarters.allows(peer_id, cost):
            return False
        self._ranges.charge(source, cost)
        self._little.charge(peer_id, cost)
        return True
