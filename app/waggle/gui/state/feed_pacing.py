"""Which cards the Live feed shows: newer ones no faster than a person can look, and none while a person is in it. No Qt."""

import time
from collections.abc import Callable
from math import inf

from waggle.protocol.state import Card

LOOK = 4.0  # seconds for which cards stand at least, however fast a model is
LINGER = 1.0  # seconds for which they still stand when nothing holds them any more: a pointer slips


class FeedPacer:
    """The cards that are shown. Their answers go on growing where they stand; what is newer waits."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.cards: tuple[Card, ...] = ()
        self.waiting = 0  # newer ones
        self.why = ""  # what a person does that holds them, in words
        self.frozen = False
        self._turned = self._held_at = -inf  # when newer ones came last, and when something last held them

    @property
    def holds(self) -> bool:
        """Whether newer cards would be seen by now, were it not for the person."""
        return self.frozen or (bool(self.why and self.waiting) and self.clock() - self._turned >= LOOK)

    def freeze(self, frozen: bool) -> None:
        self.frozen, self._turned = frozen, -inf

    def leave(self) -> None:
        """Nobody looks any more: whoever comes back finds the newest, but for those that are frozen."""
        if not self.frozen:
            self.cards = ()

    def take(self, cards: tuple[Card, ...], why: str) -> None:
        """The newest cards there are, and what holds those that are shown; empty: nothing."""
        now = self.clock()
        if why:
            self.why, self._held_at = why, now
        newest = {card.key: card for card in cards}
        newer = len(newest.keys() - {card.key for card in self.cards})
        stands = bool(cards and self.cards) and (now - self._turned < LOOK or now - self._held_at < LINGER)
        if self.frozen or stands:
            self.cards, self.waiting = tuple(newest.get(card.key, card) for card in self.cards), newer
            return
        self.cards, self.waiting, self.why = cards, 0, ""
        if newer:
            self._turned = now
