"""Detects that another computer uses our identity: two nodes with one key overwrite each other's announcements."""

from collections.abc import Callable


class DuplicateNodeDetector:
    """`own_expiry` gives the expiry of our newest announcement, in unix milliseconds; 0 before the first."""

    def __init__(self, own_expiry: Callable[[], int]) -> None:
        self._own_expiry = own_expiry
        self._newer: set[int] = set()
        self._reported = False

    def observe(self, expires: int) -> bool:
        """Note the expiry of an announcement under our peer id. Returns True once, when a duplicate is certain.

        An announcement that expires after our newest is not ours. A single one may be from an earlier run, if the clock was set
        back since: it does not change. A running duplicate announces again.
        """
        if not self._own_expiry() or expires <= self._own_expiry() or self._reported:
            return False
        self._newer.add(expires)
        self._reported = len(self._newer) >= 2
        return self._reported
