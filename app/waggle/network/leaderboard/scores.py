"""The marks: what answer sheets were worth as marked here, by model: those who learn from peers beside those who are alone.

Rounds are each node's own, whenever it played them: so a slow computer stands beside a fast one after as much training.
"""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from statistics import median_high, median_low
from typing import Annotated

import msgspec

from waggle.core.peer_id import text_of
from waggle.network.identity.keys import name_of
from waggle.network.limits.address_ranges import RELAYED
from waggle.network.limits.rate_limits import Party, of_largest_holder
from waggle.network.messages.announcement import PeerId
from waggle.network.messages.comparison import Comparison, Entrant, ScoreCurve, ScorePoint
from waggle.network.messages.rollout_record import MAX_MODEL, Count
from waggle.tasks.questions import EPOCH_SECONDS
from waggle.tasks.rollout_group import NEWCOMERS

MAX_NODES = 500
MAX_MARKS = 10_000  # of all nodes: in memory and in the file, about a megabyte and a half
MARKS_PER_NODE = 288  # marks of one node: two days of ten minutes each
PLACES = 12  # on the axis of rounds
RECENT = 6  # marks of a node that its present score is made of
MAX_CURVES = 8  # models with curves
SEVERAL = 4  # parties: from so many on none draws much by itself, be it of one name
FARTHEST = 8  # times as many rounds as the party in the middle has: beyond that nothing is drawn


class SheetScore(msgspec.Struct, frozen=True, kw_only=True):
    """What one sheet was worth. All but `right`, `total` and `epoch` is what its writer says of itself."""

    origin: PeerId
    epoch: Count
    round: Count
    learned: Count
    model: Annotated[str, msgspec.Meta(max_length=MAX_MODEL)]
    right: Count
    total: Annotated[int, msgspec.Meta(ge=1)]
    source: str = ""  # the party of its writer when it was marked, as in `Standing`; empty: it counts for itself

    @property
    def party(self) -> Party:
        """Together with whom its writer is counted."""
        return self.source or self.origin

    @property
    def together(self) -> bool:
        """Whether its writer has learned from peers."""
        return self.learned > 0


class Scoreboard:
    """One mark a node and epoch. Belongs to the loop's thread; bounded, whoever comes."""

    def __init__(self, *, ranked: bool, clock: Callable[[], float] = time.time, known: Sequence[SheetScore] = ()) -> None:
        self._ranked, self._since = ranked, clock()
        self._nodes: OrderedDict[bytes, deque[SheetScore]] = OrderedDict()
        self.sheets = 0  # marked so far
        for mark in sorted(known, key=lambda each: each.epoch):
            self._since = min(self._since, mark.epoch * EPOCH_SECONDS)
            self.add(mark)

    def add(self, mark: SheetScore) -> bool:
        """False where that node's sheet of that epoch, or of a later one, was marked before."""
        marks = self._nodes.get(mark.origin)
        if marks and marks[-1].epoch >= mark.epoch:
            return False
        self._nodes.setdefault(mark.origin, deque(maxlen=MARKS_PER_NODE)).append(mark)
        self._nodes.move_to_end(mark.origin)
        self._make_room()
        self.sheets += 1
        return True

    def all(self) -> list[SheetScore]:
        """Every mark that is kept."""
        return [mark for marks in self._nodes.values() for mark in marks]

    def epoch_of(self, origin: bytes) -> int:
        """The epoch of a node's last marked sheet; -1 where there is none."""
        marks = self._nodes.get(origin)
        return marks[-1].epoch if marks else -1

    def comparison(self) -> Comparison:
        """All that was marked, as it is drawn."""
        entrants = [_entrant(marks) for marks in self._nodes.values()]
        order = (lambda entry: (-entry.right / entry.total, entry.name)) if self._ranked else (lambda entry: (0.0, entry.name))
        return Comparison(
            curves=tuple(_curves(self.all())),
            entrants=tuple(sorted(entrants, key=order)),
            ranked=self._ranked,
            sheets=self.sheets,
            since=self._since,
        )

    def _make_room(self) -> None:
        """Where there are too many, whoever has most gives way: its node that is longest unmarked, or the oldest mark."""
        if len(self._nodes) > MAX_NODES:
            del self._nodes[of_largest_holder((origin, marks[-1].party, 1) for origin, marks in self._nodes.items())[0]]
        if sum(map(len, self._nodes.values())) > MAX_MARKS:
            crowd = of_largest_holder((origin, marks[-1].party, len(marks)) for origin, marks in self._nodes.items())
            most = max(crowd, key=lambda origin: len(self._nodes[origin]))
            self._nodes[most].popleft()
            if not self._nodes[most]:
                del self._nodes[most]


def _entrant(marks: Sequence[SheetScore]) -> Entrant:
    last = marks[-1]
    recent = [mark for mark in list(marks)[-RECENT:] if (mark.model, mark.together) == (last.model, last.together)]
    return Entrant(
        id=text_of(last.origin),
        name=name_of(last.origin),
        model=last.model,
        round=last.round,
        together=last.together,
        right=sum(mark.right for mark in recent),
        total=sum(mark.total for mark in recent),
    )


def _curves(marks: Sequence[SheetScore]) -> list[ScoreCurve]:
    """Of the models that have most votes, both curves of each. A party has one vote, divided among the names that it gave."""
    named: dict[Party, set[tuple[bytes, str]]] = {}
    for mark in marks:
        named.setdefault(mark.party, set()).add((mark.origin, mark.model))
    votes: dict[str, float] = {}
    for names in named.values():
        for _, model in names:
            votes[model] = votes.get(model, 0.0) + 1 / len(names)
    chosen = sorted(votes, key=lambda model: (-votes[model], model))[:MAX_CURVES]
    return [
        ScoreCurve(model=model, together=together, points=points)
        for model in chosen
        for together in (True, False)
        if (points := _points([mark for mark in marks if mark.model == model], together=together))
    ]


def _points(marks: Sequence[SheetScore], *, together: bool) -> tuple[ScorePoint, ...]:
    """Both curves of a model have the same places, so that they can be compared at each."""
    last = _last(marks)
    width = max(1, -(-(last + 1) // PLACES))
    places: dict[int, list[SheetScore]] = {}
    for mark in marks:
        if mark.together == together and mark.round <= last:
            places.setdefault(mark.round // width, []).append(mark)
    return tuple(
        ScorePoint(
            round=place * width + width // 2,
            right=sum(mark.right for mark in here),
            total=sum(mark.total for mark in here),
            nodes=len({mark.origin for mark in here}),
        )
        for place, everything in sorted(places.items())
        for here in (_fair(everything),)
    )


def _fair(marks: Sequence[SheetScore]) -> list[SheetScore]:
    """What counts of the marks at one place, so that no crowd draws a curve by itself, nor one name among several.

    Of an address range of several names at most as many count as the party in the middle has, and of a single name hardly more.
    Of all that are of no range, mostly homes that know nothing of each other, as many as of all others together.
    """
    parties: dict[Party, list[SheetScore]] = {}
    for mark in marks:
        parties.setdefault(RELAYED if mark.party == NEWCOMERS else mark.party, []).append(mark)
    middle = median_low(map(len, parties.values()))
    single = max(middle, RECENT) if len(parties) >= SEVERAL else MARKS_PER_NODE
    homes = parties.pop(RELAYED, [])
    fair = [mark for party in parties.values() for mark in _newest(party, middle, single)]
    return [*fair, *_newest(homes, len(fair) or len(homes), MARKS_PER_NODE)]


def _newest(marks: Sequence[SheetScore], crowd: int, single: int) -> Sequence[SheetScore]:
    """So many of a party's marks as a crowd may have, or a single name."""
    most = crowd if len({mark.origin for mark in marks}) > 1 else single
    return sorted(marks, key=lambda mark: mark.epoch)[-most:]


def _last(marks: Sequence[SheetScore]) -> int:
    """Where the axis ends: rounds are self-reported, and a party that claims a million must not press all others to its left.

    Nor stand alone at the end, where a curve says what it comes to.
    """
    newest: dict[Party, dict[bytes, int]] = {}
    for mark in marks:
        rounds = newest.setdefault(mark.party, {})
        rounds[mark.origin] = max(mark.round, rounds.get(mark.origin, 0))
    middle = median_high(median_high(rounds.values()) for rounds in newest.values())
    *_, second, first = (0, *sorted(max(rounds.values()) for rounds in newest.values()))
    return min(second if len(newest) >= SEVERAL else first, FARTHEST * max(1, middle))
