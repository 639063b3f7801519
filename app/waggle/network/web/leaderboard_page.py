"""The comparison of models on the status page: trained with peers and alone, by rounds, from answers graded here."""

from html import escape

from waggle.core.confidence_interval import interval_of
from waggle.core.peer_id import fingerprint
from waggle.network.messages.comparison import Comparison, Entrant, ScoreCurve, ScorePoint
from waggle.tasks.sandbox.exam import QUESTIONS

WIDTH, HEIGHT = 440, 150  # of a chart, in SVG units
LEFT_MARGIN, RIGHT, TOP = 34, 108, 10  # around the chart, for the axis and the names of the lines
APART = 15  # between two names, at least
STEPS = (0.05, 0.1, 0.2, 0.25, 0.5)
MAX_ROWS = 50  # in the table
NAMES = {True: "With peers", False: "Alone"}


def html(comparison: Comparison) -> str:
    """The sections of the page, one for each model."""
    about = (
        f"At most every ten minutes each node's model answers the same {QUESTIONS} questions, which nobody trains on. Every "
        "answer is marked again here. Which model wrote it is self-reported: what each node says of itself."
    )
    nobody = "" if comparison.curves else f'<p class="below">{_unnamed() if comparison.entrants else _nobody()}</p>'
    head = f'<section class="below"><h2>How models compare</h2><p class="note">{about}</p>{nobody}</section>'
    models = list(dict.fromkeys(curve.model for curve in comparison.curves))
    charts = "".join(_model(model, [curve for curve in comparison.curves if curve.model == model]) for model in models)
    return f'{head}<div class="two">{charts}</div>{_table(comparison)}' if comparison.entrants else head


def _nobody() -> str:
    return (
        "Nobody publishes answers yet. Whoever switches on “Compare models” in the settings of Waggle appears here, "
        "beside those who train alone."
    )


def _unnamed() -> str:
    return "Answers are published, but their models are not named here: no trusted member uses these names."


def _model(model: str, curves: list[ScoreCurve]) -> str:
    missing = {True, False} - {curve.together for curve in curves}
    note = "The lines are the share of right answers; a bar is its 95% interval."
    if missing == {False}:
        note = "Nobody who trains this model alone publishes answers, so there is nothing yet to compare this with."
    elif missing == {True}:
        note = "Nobody who trains this model with peers publishes answers yet: this is what it reaches alone."
    return f'<section><h2>{escape(model) or "unnamed"}</h2><p class="note">{note}</p>{_chart(model, curves)}</section>'


def _chart(model: str, curves: list[ScoreCurve]) -> str:
    points = [point for curve in curves for point in curve.points]
    last = max(max(point.round for point in points), 1)
    ceiling, step = _ceiling(max(_span(point)[1] for point in points))

    def across(place: float) -> float:
        return LEFT_MARGIN + (WIDTH - LEFT_MARGIN - RIGHT) * place / last

    def up(share: float) -> float:
        return TOP + HEIGHT * (1 - share / ceiling)

    grid = "".join(
        f'<line x1="{LEFT_MARGIN}" x2="{WIDTH - RIGHT + 8}" y1="{up(tick):.1f}" y2="{up(tick):.1f}"/>'
        f'<text x="{LEFT_MARGIN - 6}" y="{up(tick) + 4:.1f}" text-anchor="end">{tick:.0%}</text>'
        for tick in [step * i for i in range(round(ceiling / step) + 1)]
    )
    ends = _apart({curve.together: up(_share(curve.points[-1])) for curve in curves})
    lines = "".join(
        _line(
            curve,
            [(across(point.round), up(_share(point)), up(_span(point)[0]), up(_span(point)[1]), point) for point in curve.points],
            ends,
        )
        for curve in curves
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {TOP + HEIGHT + 22}" role="img" aria-label="Right answers of {escape(model)} by rounds">'
        f'{grid}{lines}<text class="across" x="{LEFT_MARGIN}" y="{TOP + HEIGHT + 18}">0 rounds</text>'
        f'<text class="across" x="{WIDTH - RIGHT}" y="{TOP + HEIGHT + 18}" text-anchor="end">{last} of its own</text></svg>'
    )


def _line(curve: ScoreCurve, places: list[tuple[float, float, float, float, ScorePoint]], ends: dict[bool, float]) -> str:
    kind = "together" if curve.together else "alone"
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y, *_ in places)
    marks = "".join(
        f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>'
        f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>{_words(curve, point)}</title></circle>'
        for x, y, low, high, point in places
    )
    name = f"{NAMES[curve.together]} {_share(curve.points[-1]):.0%}"
    label = f'<text class="{kind}" x="{WIDTH - RIGHT + 14}" y="{ends[curve.together] + 4:.1f}">{name}</text>'
    return f'<polyline class="{kind}" points="{path}"/>{marks}{label}'


def _words(curve: ScoreCurve, point: ScorePoint) -> str:
    nodes = "1 node" if point.nodes == 1 else f"{point.nodes} nodes"
    return f"{NAMES[curve.together]}, after about {point.round} rounds: {point.right} of {point.total} right, {nodes}"


def _apart(ends: dict[bool, float]) -> dict[bool, float]:
    """The vertical places of the lines' names, moved apart if they would overlap."""
    if len(ends) < 2 or abs(ends[True] - ends[False]) >= APART:
        return ends
    upper = ends[True] <= ends[False]
    middle = sum(ends.values()) / 2
    return {upper: middle - APART / 2, not upper: middle + APART / 2}


def _ceiling(most: float) -> tuple[float, float]:
    """The top of the axis, and the step between its ticks."""
    step = next((step for step in STEPS if most <= 4 * step), 0.5)
    return step * max(1, -(-most // step)), step


def _table(comparison: Comparison) -> str:
    if not comparison.ranked:
        return (
            '<section class="below"><h2>Leaderboard</h2><p class="note">This swarm is open to everybody: nothing proves who '
            "wrote an answer, so nobody is ranked. Private swarms know their members, and rank them.</p></section>"
        )
    rows = "".join(_row(place, entrant) for place, entrant in enumerate(comparison.entrants[:MAX_ROWS], 1))
    return (
        '<section class="below wide"><h2>Leaderboard</h2><p class="note">By each node’s last hour of answers; self-reported.</p>'
        '<table><tr><th>Place</th><th>Name</th><th>Model</th><th>Trained</th><th class="number">Rounds</th>'
        f'<th class="number">Right</th><th class="number">95% interval</th></tr>{rows}</table></section>'
    )


def _row(place: int, entrant: Entrant) -> str:
    low, high = interval_of(entrant.right, entrant.total)
    return (
        f'<tr><td>{place}</td><td>{escape(entrant.name)} <span class="key">{escape(fingerprint(entrant.id))}</span></td>'
        f"<td>{escape(entrant.model) or 'not named here'}</td>"
        f'<td>{NAMES[entrant.together].lower()}</td><td class="number">{entrant.round}</td>'
        f'<td class="number">{entrant.right} of {entrant.total}</td><td class="number">{low:.0%} to {high:.0%}</td></tr>'
    )


def _share(point: ScorePoint) -> float:
    return point.right / point.total


def _span(point: ScorePoint) -> tuple[float, float]:
    return interval_of(point.right, point.total)
