"""Which cards the Live feed shows: new ones no faster than a person can read, and none while a person uses the feed. No Qt."""

import time
from collections.abc import Callable
from itertools import groupby
from math import inf

from waggle.protocol.state import Card

SHORTEST_STAY = 4.0  # seconds that cards stay at least, however fast the model is
LINGER = 1.0  # seconds that they stay after the last hold: a pointer slips


class FeedPacer:
    """The cards on screen. Their answers keep growing in place; newer cards wait."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.cards: tuple[Card, ...] = ()
        self.waiting = 0  # newer ones
        self.why = ""  # why they are held, in words: what the person does
        self.frozen = False
        self._turned = self._held_at = -inf  # when newer ones came last, and when something last held them

    @property
    def holds(self) -> bool:
        """Whether newer cards wait only because of what the person does."""
        return self.frozen or (bool(self.why and self.waiting) and self.clock() - self._turned >= SHORTEST_STAY)

    def freeze(self, frozen: bool) -> None:
        self.frozen, self._turned = frozen, -inf

    def leave(self) -> None:
        """The feed is hidden: on return it shows the newest cards, unless it is frozen."""
        if not self.frozen:
            self.cards = ()

    def take(self, cards: tuple[Card, ...], why: str) -> None:
        """Offer the newest cards; `why` says what holds the ones on screen, empty if nothing does."""
        now = self.clock()
        if why:
            self.why, self._held_at = why, now
        newest = {card.key: card for card in cards}
        newer = len(newest.keys() - {card.key for card in self.cards})
        stands = bool(cards and self.cards) and (now - self._turned < SHORTEST_STAY or now - self._held_at < LINGER)
        if self.frozen or stands:
            self.cards, self.waiting = tuple(newest.get(card.key, card) for card in self.cards), newer
            return
        self.cards, self.waiting, self.why = learned_from_first(cards), 0, ""
        if newer:
            self._turned = now


def learned_from_first(cards: tuple[Card, ...]) -> tuple[Card, ...]:
    """The cards, of each round those first that something was learned from."""
    rounds = groupby(cards, key=lambda card: (card.mine, card.round))
    return tuple(card for _, played in rounds for card in sorted(played, key=lambda card: not any(card.effects)))
