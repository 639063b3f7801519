"""The scores of answer sheets, and what they say about models: trained together with peers, or alone.

Scores are compared by the number of rounds that a node has played, so a slow computer stands beside a fast one after as much
training.
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
MAX_SCORES = 10_000  # of all nodes: about 1.5 MB in memory and in the file
SCORES_PER_NODE = 288  # two days of epochs
PLACES = 12  # points on the axis of rounds
RECENT = 6  # newest scores of a node that make its present score
MAX_CURVED_MODELS = 8
SEVERAL = 4  # with so many parties, none of them may shape a curve by itself, not even with one name
FARTHEST = 8  # the axis of rounds ends at so many times the rounds of the median party


class SheetScore(msgspec.Struct, frozen=True, kw_only=True):
    """The score of one answer sheet. Only `right`, `total` and `epoch` are checked; the writer claims the rest."""

    origin: PeerId
    epoch: Count
    round: Count
    learned: Count
    model: Annotated[str, msgspec.Meta(max_length=MAX_MODEL)]
    right: Count
    total: Annotated[int, msgspec.Meta(ge=1)]
    source: str = ""  # the writer's party when it was scored (PeerReputation.party); empty: it counts for itself

    @property
    def party(self) -> Party:
        """The party that the writer is counted with."""
        return self.source or self.origin

    @property
    def together(self) -> bool:
        """Whether the writer has learned from peers."""
        return self.learned > 0


class Scoreboard:
    """One score for each node and epoch, bounded in number. Belongs to the loop's thread."""

    def __init__(self, *, ranked: bool, clock: Callable[[], float] = time.time, known: Sequence[SheetScore] = ()) -> None:
        self._ranked, self._since = ranked, clock()
        self._nodes: OrderedDict[bytes, deque[SheetScore]] = OrderedDict()
        self.sheets = 0  # sheets scored so far
        for score in sorted(known, key=lambda each: each.epoch):
            self._since = min(self._since, score.epoch * EPOCH_SECONDS)
            self.add(score)

    def add(self, score: SheetScore) -> bool:
        """Add a score. Returns False if the node has a score of this epoch or of a later one."""
        scores = self._nodes.get(score.origin)
        if scores and scores[-1].epoch >= score.epoch:
            return False
        self._nodes.setdefault(score.origin, deque(maxlen=SCORES_PER_NODE)).append(score)
        self._nodes.move_to_end(score.origin)
        self._make_room()
        self.sheets += 1
        return True

    def all(self) -> list[SheetScore]:
        """All scores."""
        return [score for scores in self._nodes.values() for score in scores]

    def epoch_of(self, origin: bytes) -> int:
        """The epoch of a node's newest score; -1 if there is none."""
        scores = self._nodes.get(origin)
        return scores[-1].epoch if scores else -1

    def comparison(self) -> Comparison:
        """All scores, as the window draws them."""
        entrants = [_entrant(scores) for scores in self._nodes.values()]
        order = (lambda entry: (-entry.right / entry.total, entry.name)) if self._ranked else (lambda entry: (0.0, entry.name))
        return Comparison(
            curves=tuple(_curves(self.all())),
            entrants=tuple(sorted(entrants, key=order)),
            ranked=self._ranked,
            sheets=self.sheets,
            since=self._since,
        )

    def _make_room(self) -> None:
        """If there are too many, the largest party loses the node with the oldest newest score, or its oldest score."""
        if len(self._nodes) > MAX_NODES:
            del self._nodes[of_largest_holder((origin, scores[-1].party, 1) for origin, scores in self._nodes.items())[0]]
        if sum(map(len, self._nodes.values())) > MAX_SCORES:
            crowd = of_largest_holder((origin, scores[-1].party, len(scores)) for origin, scores in self._nodes.items())
            most = max(crowd, key=lambda origin: len(self._nodes[origin]))
            self._nodes[most].popleft()
            if not self._nodes[most]:
                del self._nodes[most]


def _entrant(scores: Sequence[SheetScore]) -> Entrant:
    last = scores[-1]
    recent = [score for score in list(scores)[-RECENT:] if (score.model, score.together) == (last.model, last.together)]
    return Entrant(
        id=text_of(last.origin),
        name=name_of(last.origin),
        model=last.model,
        round=last.round,
        together=last.together,
        right=sum(score.right for score in recent),
        total=sum(score.total for score in recent),
    )


def _curves(scores: Sequence[SheetScore]) -> list[ScoreCurve]:
    """Both curves of the models with the most votes. Each party has one vote, divided among its (node, model) pairs."""
    named: dict[Party, set[tuple[bytes, str]]] = {}
    for score in scores:
        named.setdefault(score.party, set()).add((score.origin, score.model))
    votes: dict[str, float] = {}
    for names in named.values():
        for _, model in names:
            votes[model] = votes.get(model, 0.0) + 1 / len(names)
    chosen = sorted(votes, key=lambda model: (-votes[model], model))[:MAX_CURVED_MODELS]
    return [
        ScoreCurve(model=model, together=together, points=points)
        for model in chosen
        for together in (True, False)
        if (points := _points([score for score in scores if score.model == model], together=together))
    ]


def _points(scores: Sequence[SheetScore], *, together: bool) -> tuple[ScorePoint, ...]:
    """The points of one curve. Both curves of a model share their places, so that they can be compared at each."""
    last = _last(scores)
    width = max(1, -(-(last + 1) // PLACES))
    places: dict[int, list[SheetScore]] = {}
    for score in scores:
        if score.together == together and score.round <= last:
            places.setdefault(score.round // width, []).append(score)
    return tuple(
        ScorePoint(
            round=place * width + width // 2,
            right=sum(score.right for score in here),
            total=sum(score.total for score in here),
            nodes=len({score.origin for score in here}),
        )
        for place, everything in sorted(places.items())
        for here in (_fair(everything),)
    )


def _fair(scores: Sequence[SheetScore]) -> list[SheetScore]:
    """The scores that count at one place, so that neither a crowd nor one name among several shapes a curve by itself.

    Of an address range with several names at most as many scores count as the median party has, and of a single name hardly more.
    Of all nodes without a range, mostly homes that know nothing of each other, as many count as of all others together.
    """
    parties: dict[Party, list[SheetScore]] = {}
    for score in scores:
        parties.setdefault(RELAYED if score.party == NEWCOMERS else score.party, []).append(score)
    middle = median_low(map(len, parties.values()))
    single = max(middle, RECENT) if len(parties) >= SEVERAL else SCORES_PER_NODE
    homes = parties.pop(RELAYED, [])
    fair = [score for party in parties.values() for score in _newest(party, middle, single)]
    return [*fair, *_newest(homes, len(fair) or len(homes), SCORES_PER_NODE)]


def _newest(scores: Sequence[SheetScore], crowd: int, single: int) -> Sequence[SheetScore]:
    """The newest scores of a party: `crowd` if it has several names, else `single`."""
    most = crowd if len({score.origin for score in scores}) > 1 else single
    return sorted(scores, key=lambda score: score.epoch)[-most:]


def _last(scores: Sequence[SheetScore]) -> int:
    """The last round of the axis.

    Rounds are claims: a party that claims a million must neither squeeze all others to the left, nor stand alone at the end of
    the curve, where people look for the result.
    """
    newest: dict[Party, dict[bytes, int]] = {}
    for score in scores:
        rounds = newest.setdefault(score.party, {})
        rounds[score.origin] = max(score.round, rounds.get(score.origin, 0))
    middle = median_high(median_high(rounds.values()) for rounds in newest.values())
    *_, second, first = (0, *sorted(max(rounds.values()) for rounds in newest.values()))
    return min(second if len(newest) >= SEVERAL else first, FARTHEST * max(1, middle))
