"""How models of a swarm compare: curves of held-out scores, as messages."""

import msgspec


class ScorePoint(msgspec.Struct, frozen=True, kw_only=True):
    """The sheets written around this round that count (see `_fair`): answers that were right, of how many, by how many nodes."""

    round: int
    right: int
    total: int
    nodes: int


class ScoreCurve(msgspec.Struct, frozen=True, kw_only=True):
    """One model as trained together, or alone."""

    model: str
    together: bool
    points: tuple[ScorePoint, ...]


class Entrant(msgspec.Struct, frozen=True, kw_only=True):
    """One node and its latest sheets."""

    id: str
    name: str
    model: str
    round: int
    together: bool
    right: int
    total: int


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """`entrants` are ranked, the best first, where the swarm knows its members; else they stand by name."""

    curves: tuple[ScoreCurve, ...] = ()
    entrants: tuple[Entrant, ...] = ()
    ranked: bool = False
    sheets: int = 0
    since: float = 0.0
