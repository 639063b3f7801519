"""Calls to peers that others name: one budget for each of them, over all who name it, and a rest after a call that failed."""

import time
from collections import OrderedDict
from collections.abc import Callable

from waggle.network.limits.rate_limits import REMEMBERED, RateLimit

CALLS_RATE, CALLS_BURST = 8.0, 64.0  # a second and at once: a gateway gives out the payloads of up to 64 light clients
REST_S, LONGEST_REST_S = 15.0, 960.0  # doubled after each failure in a row


class NamedCalls:
    """What this node asked of peers that an announcement, or a light client, named. Belongs to one thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._budget = RateLimit(CALLS_RATE, CALLS_BURST, clock)
        self._rests: OrderedDict[bytes, tuple[float, float]] = OrderedDict()  # peer id -> until when, and how long it rests

    def may(self, peer_id: bytes) -> bool:
        """Whether this peer may be called now."""
        until, _ = self._rests.get(peer_id, (0.0, 0.0))
        return until <= self._clock() and self._budget.has(peer_id)

    def begin(self, peer_id: bytes) -> bool:
        """Whether this peer may be called now; if so the call is counted."""
        return self.may(peer_id) and self._budget.allows(peer_id)

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
