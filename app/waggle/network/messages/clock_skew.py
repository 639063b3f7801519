"""Reports how far this computer's clock is off, by what peers say: once, and again when that changes."""

import logging
import math
import statistics
import time
from collections.abc import Callable, Sequence

from waggle.network.messages.events import ClockSkewed, NetworkEvent

log = logging.getLogger(__name__)

REPORTED_S = 60.0  # a tenth of an epoch: less does no harm
MAX_SKEW_S = 365 * 86_400.0  # a peer may claim any time
REST_S = 3600.0  # between two reports, so that peers that lie cannot push out all other warnings


class ClockSkewMonitor:
    """Belongs to the loop's thread."""

    def __init__(self, report: Callable[[NetworkEvent], None]) -> None:
        self._report = report
        self._reported, self._rests_until = 0.0, -math.inf

    def observe(self, offsets: Sequence[float]) -> None:
        """Report if the median of these offsets says that our clock is off. Seconds; positive: the peers' clocks are ahead."""
        if not offsets:
            return
        skew = statistics.median(max(-MAX_SKEW_S, min(MAX_SKEW_S, each)) for each in offsets)
        if abs(skew - self._reported) <= REPORTED_S:
            return
        if abs(skew) <= REPORTED_S:  # the clock is right now
            self._reported = skew
        elif time.monotonic() >= self._rests_until:
            log.info("the clocks of %d peers are %.0f s ahead of ours", len(offsets), skew)
            self._reported, self._rests_until = skew, time.monotonic() + REST_S
            self._report(ClockSkewed(seconds=skew))
