"""Times of day in the zone of the engine, which its week and its days go by, also where the reader's computer has another."""

import calendar
import time
from collections.abc import Callable

Local = Callable[[float], time.struct_time]


def local_time(utc_offset: int | None, now: float) -> Local:
    """What turns unix seconds into a time in the zone that is now `utc_offset` seconds ahead of UTC.

    That is the zone of this process if it agrees now, because it knows its summer time, or if the offset is not known (None).
    """
    if is_here(utc_offset, now):
        return time.localtime
    return lambda at: time.gmtime(at + (utc_offset or 0))


def utc_offset_of(local: Local, at: float) -> int:
    """Seconds by which these times are ahead of UTC at the time `at`."""
    return calendar.timegm(local(at)) - int(at)


def is_here(utc_offset: int | None, now: float) -> bool:
    """Whether the zone is that of this process at the time `now`, or not known."""
    return utc_offset is None or utc_offset == time.localtime(now).tm_gmtoff


def time_there(utc_offset: int | None, now: float) -> str:
    """The time of day in that zone, such as "22:14"; empty if it is the zone of this process, or not known."""
    return "" if is_here(utc_offset, now) else time.strftime("%H:%M", local_time(utc_offset, now)(now))
