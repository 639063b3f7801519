"""Calls to peers that others name: one budget for each of them, over all who name it, and a rest after a call that failed.

A made-up name can also claim the address of a bystander, which then gets a connection from each node that calls the name. Only a
call shows that. So calls to peers that are not connected have a budget together, which those who give something leave untouched.
"""

import time
from collections import OrderedDict
from collections.abc import Callable

from waggle.network.limits.rate_limits import REMEMBERED, RateLimit

CALLS_RATE, CALLS_BURST = 8.0, 64.0  # a second and at once: a gateway gives out the payloads of up to 64 light clients
CLIENTS_LEAVE = CALLS_BURST / 2  # of the budget, so that a light client that names a gateway again and again keeps us from nobody
REST_S, LONGEST_REST_S = 15.0, 960.0  # doubled after each failure in a row
UNMET_RATE, UNMET_BURST = 1.0, 64.0  # calls in vain to peers that are not connected, a second and at once
OWN, CLIENTS = "own", "light clients"  # on whose behalf


class UnmetCalls:
    """What this node asked in vain of peers that it is not connected to, for itself and for light clients. For one thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._budget = RateLimit(UNMET_RATE, UNMET_BURST, clock)

    def may(self, caller: str) -> bool:
        """Whether such a peer may be called now."""
        return self._budget.has(caller)

    def begin(self, caller: str) -> bool:
        """Whether such a peer may be called now; if so the call is counted."""
        return self._budget.allows(caller)

    def gave(self, caller: str) -> None:
        """Take back a call that was counted: the peer is there."""
        self._budget.charge(caller, -1.0)


class NamedCalls:
    """What this node asked of peers that an announcement, or a light client, named. Belongs to one thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._budget = RateLimit(CALLS_RATE, CALLS_BURST, clock)
        self._rests: OrderedDict[bytes, tuple[float, float]] = OrderedDict()  # peer id -> until when, and how long it rests

    def may(self, peer_id: bytes, leave: float = 0.0) -> bool:
        """Whether this peer may be called now, if so many calls have to be left for others."""
        until, _ = self._rests.get(peer_id, (0.0, 0.0))
        return until <= self._clock() and self._budget.has(peer_id, 1.0 + leave)

    def begin(self, peer_id: bytes, leave: float = 0.0) -> bool:
        """The same; if it may be called, the call is counted."""
        return self.may(peer_id, leave) and self._budget.allows(peer_id)

    def end(self, peer_id: bytes, *, answered: bool) -> None:
        """Note how a call ended. Calls that fail at the same time count once."""
        until, rest = self._rests.get(peer_id, (0.0, 0.0))
        if answered:
            self._rests.pop(peer_id, None)
        elif until <= self._clock():
            rest = min(LONGEST_REST_S, 2 * rest or REST_S)
            self._rests[peer_id] = self._clock() + rest, rest
            self._rests.move_to_end(peer_id)
            if len(self._rests) > REMEMBERED:
                self._rests.popitem(last=False)
