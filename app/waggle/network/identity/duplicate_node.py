"""Notices that another computer announces with our own identity: two copies of one key hold each other back."""

from collections.abc import Callable


class DuplicateNodeDetector:
    """`mine` gives the expiry of our newest announcement, in unix milliseconds; 0 before the first."""

    def __init__(self, mine: Callable[[], int]) -> None:
        self._mine = mine
        self._newer: set[int] = set()
        self._reported = False

    def observe(self, expires: int) -> bool:
        """Whether, by this announcement under our name, it has just become certain.

        What was announced later than our newest was not announced by us. One such may be of our own last life, when the clock
        was set back since; that one stays as it is, while a living twin announces again.
        """
        if not self._mine() or expires <= self._mine() or self._reported:
            return False
        self._newer.add(expires)
        self._reported = len(self._newer) >= 2
        return self._reported
