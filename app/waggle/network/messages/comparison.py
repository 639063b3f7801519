"""The comparison of a swarm's models as the window shows it: curves of scores, and the nodes behind them."""

import msgspec


class ScorePoint(msgspec.Struct, frozen=True, kw_only=True):
    """The sheets around this round that count (network/leaderboard/scores.py): right answers, all answers, their writers."""

    round: int
    right: int
    total: int
    nodes: int


class ScoreCurve(msgspec.Struct, frozen=True, kw_only=True):
    """One model, trained together with peers or alone."""

    model: str
    together: bool
    points: tuple[ScorePoint, ...]


class Entrant(msgspec.Struct, frozen=True, kw_only=True):
    """One node, and the sum of its newest sheets."""

    id: str
    name: str
    model: str
    round: int
    together: bool
    right: int
    total: int


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """In a private swarm `entrants` are ranked, the best first; in a public one they are sorted by name.

    `sheets` counts the sheets scored since unix time `since`.
    """

    curves: tuple[ScoreCurve, ...] = ()
    entrants: tuple[Entrant, ...] = ()
    ranked: bool = False
    sheets: int = 0
    since: float = 0.0
