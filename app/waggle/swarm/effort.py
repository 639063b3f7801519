"""Effort: how long the verifier worked on what each party sent. Whoever made it work rests for many times as long."""

import time
from collections.abc import Callable

Party = str | bytes  # an address range, all newcomers, or one peer

REST = 20.0  # times the seconds worked: so no party has more than one twentieth of the verifier's time
SAVED_S = 40.0  # of rest that whoever made no work for so long need not take: two seconds of work at once


class Effort:
    """Paid for afterwards: before it is judged, nobody knows how long a record takes. Belongs to one thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._free_at: dict[Party, float] = {}

    def spent(self, party: Party, seconds: float) -> None:
        """Count so much work."""
        now = self._clock()
        self._free_at = {each: at for each, at in self._free_at.items() if at > now - SAVED_S}
        self._free_at[party] = self._free_at.get(party, now - SAVED_S) + REST * seconds

    def rests(self, party: Party) -> bool:
        """Whether nothing of this party is judged now."""
        return party in self._free_at and self._free_at[party] > self._clock()
