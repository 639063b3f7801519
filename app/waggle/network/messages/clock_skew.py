"""The skew: how far our clock is off by what others say, told once and again when it has changed."""

import math
import statistics
import time
from collections.abc import Callable, Sequence

from waggle.network.messages.events import ClockSkewed, NetworkEvent

TOLD_S = 60.0  # a tenth of an epoch
MOST_S = 365 * 86_400.0  # a peer may say any time
REST_S = 3600.0  # between two warnings: those of a lie must not push out all others


class ClockSkewMonitor:
    """Belongs to the loop's thread."""

    def __init__(self, tell: Callable[[NetworkEvent], None]) -> None:
        self._tell = tell
        self._reported, self._rests_until = 0.0, -math.inf

    def hear(self, offsets: Sequence[float]) -> None:
        """Tell when our clock is off by the median of what others say, in seconds; positive: theirs are ahead."""
        if not offsets:
            return
        skew = statistics.median(max(-MOST_S, min(MOST_S, each)) for each in offsets)
        if abs(skew - self._reported) <= TOLD_S:
            return
        if abs(skew) <= TOLD_S:  # it has come right again
            self._reported = skew
        elif time.monotonic() >= self._rests_until:
            self._reported, self._rests_until = skew, time.monotonic() + REST_S
            self._tell(ClockSkewed(seconds=skew))
