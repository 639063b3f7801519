"""The time zone of the times in the window: that of this computer, or of the one on which the engine runs."""

import time

from waggle.protocol.zone import local_time


class WrittenZone:
    """The zone in use, one for the application."""

    def __init__(self) -> None:
        self.utc_offset: int | None = None


_written = WrittenZone()


def use(utc_offset: int | None) -> None:
    """Write times in the zone that is now so many seconds ahead of UTC; None: in that of this computer."""
    _written.utc_offset = utc_offset


def local(at: float) -> time.struct_time:
    """A time in seconds since the epoch, in the zone in use."""
    return local_time(_written.utc_offset, time.time())(at)
