"""The part of the status page about the node itself: how its model learns, with whom, and on what it learns.

Titles of specialties come from charters, which strangers write, so they are escaped like every other text.
"""

from html import escape

from waggle.core.text.round_number import round_number
from waggle.network.web.training_status import HeldOutStatus, TrainingStatus

WIDTH, HEIGHT = 720, 160  # of the chart, in SVG units
MARGIN, TOP = 40, 8  # for the axis at its side, and above it
STEPS = (0.05, 0.1, 0.2, 0.25, 0.5)
WITH_WHOM = {
    "solo": "alone, by choice", "connecting": "looking for peers", "alone": "alone: nobody else is here", "together": "together",
}  # fmt: skip


def html(training: TrainingStatus) -> str:
    """The sections of the page about this node."""
    key = f'<span class="key">{escape(training.fingerprint)}</span>'
    return (
        f"<p>{escape(training.name)} {key} trains {escape(training.model)} on {escape(training.device)}. "
        f'{escape(training.says)}</p><div class="figures">{"".join(_figures(training))}</div>{_chart(training)}'
        f'<div class="two">{_specialties(training.held_out)}{_learning(training)}</div>'
    )


def _figures(training: TrainingStatus) -> list[str]:
    score, peers = training.held_out, training.members
    some = ", on a few questions" if score and score.early else ""
    connected = f", {training.connected} connected" if training.connected else ""
    figures = (
        (str(round_number(training.round)), "round", training.phase),
        (
            _percent(score.right / score.total if score and score.total else None), "of new questions solved",
            f"{score.right} of {score.total}, after round {score.round}{some}" if score else "not measured yet",
        ),
        (
            _decimal(training.reward), "reward",
            f"last round, {_percent(training.solved)} right" if training.solved is not None else "no round yet",
        ),
        (str(peers), "peer trains with it" if peers == 1 else "peers train with it",
         WITH_WHOM.get(training.company, training.company) + connected),
    )  # fmt: skip
    return [
        f'<section><div class="figure">{escape(figure)}</div><h2>{escape(words)}</h2><div class="note">{escape(note)}</div>'
        "</section>"
        for figure, words, note in figures
    ]


def _chart(training: TrainingStatus) -> str:
    """Rewards and held-out scores by round: both are from 0 to 1, so that they share an axis."""
    rewards = [(round_number(index), reward) for index, reward in training.rewards]
    points = (*rewards, *training.scores)
    if not points:
        return (
            '<section><h2>How it learns</h2><p class="note">The curves begin with the first finished round of this swarm.</p>'
            "</section>"
        )
    first, last = min(number for number, _ in points), max(number for number, _ in points)
    ceiling, step = _ceiling(max(value for _, value in points))

    def place(number: int, value: float) -> str:
        return f"{MARGIN + (WIDTH - MARGIN - 6) * (number - first) / max(1, last - first):.1f},{_up(value, ceiling):.1f}"

    grid = "".join(
        f'<line x1="{MARGIN}" x2="{WIDTH}" y1="{_up(tick, ceiling):.1f}" y2="{_up(tick, ceiling):.1f}"/>'
        f'<text x="{MARGIN - 6}" y="{_up(tick, ceiling) + 4:.1f}" text-anchor="end">{tick:.2f}</text>'
        for tick in (step * position for position in range(round(ceiling / step) + 1))
    )
    reward_line = " ".join(place(number, value) for number, value in rewards)
    score_line = " ".join(place(number, value) for number, value in training.scores)
    words = [  # of every score, and of the newest reward, as a line of one point is not seen
        *(("held-out", each, f"after round {each[0]}: {each[1]:.1%} of the reserved questions") for each in training.scores),
        *(("reward", each, f"round {each[0]}: mean reward {each[1]:.2f}") for each in rewards[-1:]),
    ]
    marks = "".join(_mark(kind, place(*each), says) for kind, each, says in words)
    return (
        '<section><h2>How it learns</h2><p class="note"><span class="held-out">●</span> share of reserved questions solved, '
        '<span class="reward">●</span> mean reward of a round, both from 0 to 1, in this swarm.</p>'
        f'<svg viewBox="0 0 {WIDTH} {TOP + HEIGHT + 22}" role="img" aria-label="Rewards and held-out scores by round">{grid}'
        f'<polyline class="reward" points="{reward_line}"/><polyline class="held-out" points="{score_line}"/>{marks}'
        f'<text class="across" x="{MARGIN}" y="{TOP + HEIGHT + 18}">{_rounds(first)}</text>'
        f'<text class="across" x="{WIDTH}" y="{TOP + HEIGHT + 18}" text-anchor="end">{_rounds(last)}</text></svg></section>'
    )


def _rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"


def _mark(kind: str, place: str, words: str) -> str:
    across, _, up = place.partition(",")
    return f'<circle class="{kind}" cx="{across}" cy="{up}" r="3"><title>{words}</title></circle>'


def _up(value: float, ceiling: float) -> float:
    return TOP + HEIGHT * (1 - min(1.0, max(0.0, value / ceiling)))


def _ceiling(most: float) -> tuple[float, float]:
    """The top of the axis, and the step between its ticks."""
    step = next((step for step in STEPS if most <= 4 * step), 0.5)
    return step * max(1, -(-most // step)), step


def _specialties(score: HeldOutStatus | None) -> str:
    kinds = score.specialties if score is not None else ()
    rows = "".join(
        f"<tr><td>{escape(kind.title)}</td><td>{bar(kind.right / kind.total if kind.total else None)}</td>"
        f'<td class="number">{kind.right} of {kind.total}</td></tr>'
        for kind in kinds
    )
    nothing = "" if rows else '<p class="note below">Not measured yet.</p>'
    return (
        '<section><h2>New questions solved, by specialty</h2><p class="note">Reserved questions, on which nobody trains.</p>'
        f'<table><tr><th>Specialty</th><th></th><th class="number">Right</th></tr>{rows}</table>{nothing}</section>'
    )


def _learning(training: TrainingStatus) -> str:
    rate, tokens, memory = training.learning_rate, training.tokens_per_second, training.memory
    figures = (
        ("Learning rate", "-" if rate is None else f"{rate:.3g}"),
        ("Entropy, nats per token", _decimal(training.entropy)),
        ("Share of peers in what it learns", _percent(training.external_share)),
        ("Tokens per second", "-" if tokens is None else f"{tokens:.0f}"),
        ("Memory", "-" if memory is None else f"{memory / 1e9:.1f} GB"),
    )
    rows = "".join(f'<tr><td>{name}</td><td class="number">{value}</td></tr>' for name, value in figures)
    return f'<section><h2>The last round</h2><p class="note">Of this node alone.</p><table>{rows}</table></section>'


def bar(share: float | None) -> str:
    """A bar whose filled part is this share."""
    width = 100 * min(1.0, max(0.0, share or 0.0))
    return f'<span class="track"><span class="fill" style="width:{width:.0f}%"></span></span>'


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
