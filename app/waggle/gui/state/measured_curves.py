"""Held-out curves of real models that were measured elsewhere, which Progress shows beside the own one of such a model."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache

import msgspec

from waggle.core import paths
from waggle.protocol.events import HeldOutScore
from waggle.protocol.state import State

EXACT = 0.01  # by which the number of weights may differ: norms and biases are not always counted
STORED_AS = r"([-._](b?f16|f32|i?q\d\w*))*"  # how a file may store the same model, as in "-bf16" or ".Q4_K_M"


class MeasuredCurves(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The mean share of right held-out answers of one model after these rounds: alone, and in swarms with `peers` peers.

    `specialties`: the levels of each dataset of the charter. `source` says where they were measured, as the window shows it.
    """

    model: str  # owner/name on the hub
    weights: int
    specialties: dict[str, frozenset[str]]
    rounds: tuple[int, ...]
    alone: tuple[float, ...]
    runs: int
    with_peers: tuple[float, ...]
    swarms: int
    peers: int
    source: str


@cache
def all_measured() -> tuple[MeasuredCurves, ...]:
    """The curves in resources/measured_curves.json, which tests/measured/measured_curves.py writes."""
    content = (paths.resources() / "measured_curves.json").read_bytes()
    return msgspec.json.decode(content, type=tuple[MeasuredCurves, ...])


def measured_curves(state: State) -> MeasuredCurves | None:
    """The curves of the model in training on the questions of its swarm; None if these were not measured.

    A model is known by its name, in whatever precision a file stores it, and the number of its weights. Older engines name no
    levels.
    """
    ready = state.ready
    if ready is None:
        return None
    levels = {specialty.dataset: frozenset(specialty.levels) for specialty in ready.specialties}
    name = ready.model.rpartition(" ")[0]  # without the size
    for curves in all_measured():
        is_named_so = re.fullmatch(re.escape(curves.model.rpartition("/")[2]) + STORED_AS, name, re.IGNORECASE)
        is_as_large = abs(ready.parameters - curves.weights) <= EXACT * curves.weights
        if is_named_so and is_as_large and levels == curves.specialties:
            return curves
    return None


def first_round(exams: Sequence[Sequence[HeldOutScore]]) -> int:
    """The round from which on the model was trained in this swarm; `exams` has the scores of each set of questions, in order.

    Before that it may have been trained in another swarm, whose questions are others.
    """
    begins = exams[-1]
    if len(exams) > 1 and exams[-2][-1].early:  # on the first of the same questions
        begins = exams[-2]
    return begins[0].round


class MeasuredLine(msgspec.Struct, frozen=True):
    """One of the two curves, by the person's own rounds: it begins where the model came to this swarm."""

    is_alone: bool
    rounds: tuple[float, ...]
    shares: tuple[float, ...]


def measured_lines(state: State, exams: Sequence[Sequence[HeldOutScore]], last: float) -> tuple[MeasuredLine, ...]:
    """Both curves up to the round `last`; none where that was not measured, or before the first score."""
    curves = measured_curves(state)
    if curves is None or not exams:
        return ()
    begins = first_round(exams)
    rounds = [begins + number for number in curves.rounds]
    drawn = ((is_alone, clipped(rounds, shares, last)) for is_alone, shares in ((True, curves.alone), (False, curves.with_peers)))
    return tuple(MeasuredLine(is_alone, tuple(x), tuple(y)) for is_alone, (x, y) in drawn)


def clipped(rounds: Sequence[float], shares: Sequence[float], last: float) -> tuple[list[float], list[float]]:
    """The part of a curve up to the round `last`, where it ends between two points."""
    inside = bisect_right(rounds, last)
    x, y = [float(number) for number in rounds[:inside]], list(shares[:inside])
    if 0 < inside < len(rounds) and x[-1] < last:
        part = (last - x[-1]) / (rounds[inside] - x[-1])
        x.append(last)
        y.append(y[-1] + part * (shares[inside] - y[-1]))
    return x, y
