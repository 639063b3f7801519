"""The leaderboard's event: how the models of the swarm answer the same reserved questions, judged on this computer.

Everybody can check whether answers are right. Which model wrote them, and how it was trained, is what each node claims.
"""

import msgspec

from waggle.protocol.events import Count, Event


class ScorePoint(msgspec.Struct, frozen=True, kw_only=True):
    """The answer sheets written around this round: right answers, all answers, and nodes."""

    round: Count
    right: Count
    total: Count
    nodes: Count


class ScoreCurve(msgspec.Struct, frozen=True, kw_only=True):
    """The curve of one model, trained `together` with peers or alone."""

    model: str
    together: bool
    points: tuple[ScorePoint, ...]


class Entrant(msgspec.Struct, frozen=True, kw_only=True):
    """One node, by its latest answer sheets."""

    id: str
    name: str
    model: str
    round: Count
    together: bool
    right: Count
    total: Count
    mine: bool = False


class ModelsCompared(Event, frozen=True, kw_only=True, tag=True):
    """An answer sheet was judged. `entrants` are in order of rank if the swarm knows its members (`ranked`), else by name."""

    curves: tuple[ScoreCurve, ...]
    entrants: tuple[Entrant, ...]
    ranked: bool
    sheets: Count
    since: float


ComparingEvent = ModelsCompared
