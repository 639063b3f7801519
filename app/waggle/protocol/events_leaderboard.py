"""What the engine tells of how models of the swarm compare: answers to the same reserved questions, each marked on this computer.

That the answers are right or wrong anybody can check; who wrote them, and how it was trained, is what each node says of itself.
"""

import msgspec

from waggle.protocol.events import Count, Event


class ScorePoint(msgspec.Struct, frozen=True, kw_only=True):
    """All sheets written around this round of their writers: right answers, of how many, and by how many nodes."""

    round: Count
    right: Count
    total: Count
    nodes: Count


class ScoreCurve(msgspec.Struct, frozen=True, kw_only=True):
    """One model as trained with peers, or alone."""

    model: str
    together: bool
    points: tuple[ScorePoint, ...]


class Entrant(msgspec.Struct, frozen=True, kw_only=True):
    """One node by its latest sheets."""

    id: str
    name: str
    model: str
    round: Count
    together: bool
    right: Count
    total: Count
    mine: bool = False


class ModelsCompared(Event, frozen=True, kw_only=True, tag=True):
    """A sheet was marked. `entrants` are ranked, the best first, where the swarm knows its members; else they stand by name."""

    curves: tuple[ScoreCurve, ...]
    entrants: tuple[Entrant, ...]
    ranked: bool
    sheets: Count
    since: float


ComparingEvent = ModelsCompared
