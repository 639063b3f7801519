"""Reports how far this computer's clock and those of peers differ: once, and again when that changes or more of them agree."""

import logging
import math
import statistics
import time
from collections.abc import Callable, Sequence

from waggle.network.messages.events import ClockSkewed, NetworkEvent

log = logging.getLogger(__name__)

ENOUGH = 2  # peers that agree: with fewer, nobody knows who is right
REPORTED_S = 60.0  # a tenth of an epoch: less does no harm
MAX_SKEW_S = 365 * 86_400.0  # a peer may claim any time
REST_S = 3600.0  # between two reports, so that peers that lie cannot push out all other warnings


class ClockSkewMonitor:
    """Belongs to the loop's thread."""

    def __init__(self, report: Callable[[NetworkEvent], None]) -> None:
        self._report = report
        self._reported, self._is_certain, self._rests_until = 0.0, True, -math.inf

    def observe(self, offsets: Sequence[float]) -> None:
        """Report if the median of these offsets is far from 0. Seconds, one for each peer; positive: its clock is ahead."""
        if not offsets:
            return
        bounded = [max(-MAX_SKEW_S, min(MAX_SKEW_S, each)) for each in offsets]
        skew = statistics.median(bounded)
        agreeing = sum(abs(each - skew) <= REPORTED_S for each in bounded)
        learned = agreeing >= ENOUGH and not self._is_certain
        if abs(skew - self._reported) <= REPORTED_S and not learned:
            return
        if abs(skew) <= REPORTED_S:  # the clock is right now
            self._reported, self._is_certain = skew, True
        elif learned or time.monotonic() >= self._rests_until:
            log.info("the clocks of %d of %d peers are %.0f s ahead of ours", agreeing, len(offsets), skew)
            self._reported, self._is_certain, self._rests_until = skew, agreeing >= ENOUGH, time.monotonic() + REST_S
            self._report(ClockSkewed(seconds=skew, agreeing=agreeing))
