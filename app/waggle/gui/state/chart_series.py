"""Series for charts and tables, computed from a State: rounds in order, trend, positions on an axis, ticks. No Qt."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from waggle.core.text.round_number import round_number
from waggle.protocol.events import Aha, HeldOutScore, RoundSummary
from waggle.protocol.figures.current import held_out_scores
from waggle.protocol.state import State

Axis = Literal["round", "elapsed", "clock"]
AXES: tuple[Axis, ...] = ("round", "elapsed", "clock")
TIME_STEPS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800)
Stretch = list[tuple[int, float]]  # the places of rounds, and a reward at each
SHORTEST_PAUSE = 120.0  # seconds between two rounds that count as a pause


class PauseSpan(msgspec.Struct, frozen=True):
    """A time without rounds; start and end in seconds since the epoch."""

    start: float
    end: float


def rounds(state: State) -> list[RoundSummary]:
    """The long history and the recent rounds merged, oldest first."""
    known = {summary.round: summary for summary in (*state.history, *state.rounds)}
    return [known[number] for number in sorted(known)]


def scores(state: State) -> list[HeldOutScore]:
    """The held-out scores of the long history and the recent ones merged, oldest first."""
    return held_out_scores(state)


def by_question_set(held_out_scores: Sequence[HeldOutScore]) -> list[list[HeldOutScore]]:
    """Group consecutive scores on the same questions: another swarm, or another number of questions, starts a new group."""
    groups: list[list[HeldOutScore]] = []
    for score in held_out_scores:
        if groups and _same_exam(groups[-1][-1], score):
            groups[-1].append(score)
        else:
            groups.append([score])
    return groups


def _same_exam(before: HeldOutScore, after: HeldOutScore) -> bool:
    known = before.exam and after.exam
    return before.total == after.total and (not known or before.exam == after.exam)


def trend(values: Sequence[float], width: int) -> list[float]:
    """Centred moving mean over `width` values; near both ends over fewer."""
    sums = [0.0]
    for value in values:
        sums.append(sums[-1] + value)
    means = []
    for i in range(len(values)):
        low, high = max(0, i - width // 2), min(len(values), i + width // 2 + 1)
        means.append((sums[high] - sums[low]) / (high - low))
    return means


def trend_width(count: int) -> int:
    """Width of the trend in rounds: a tenth of `count`, odd, from 3 to 41."""
    return max(3, min(41, count // 10 | 1))


def reward_ceiling(raw: Sequence[float], smooth: Sequence[float], peers: Sequence[Stretch]) -> float:
    """Upper end of a reward chart: above every round and both trends."""
    highest = max((reward for stretch in peers for _, reward in stretch), default=0.0)
    return max(0.1, *raw, 1.2 * max(smooth, default=0.0), 1.1 * highest)


def seconds_worked(summaries: Sequence[RoundSummary]) -> list[float]:
    """Seconds of work up to each round; rounds missing in the thinned history count like the next one."""
    positions, total, before = [], 0.0, 0
    for summary in summaries:
        total += summary.seconds * max(1, summary.round - before if before else 1)
        before = summary.round
        positions.append(total)
    return positions


def round_positions(summaries: Sequence[RoundSummary], axis: Axis) -> list[float]:
    """The x position of each round."""
    match axis:
        case "round":
            return [float(round_number(summary.round)) for summary in summaries]
        case "elapsed":
            return seconds_worked(summaries)
        case "clock":
            return [summary.at for summary in summaries]


def event_positions(items: Sequence[HeldOutScore | Aha], summaries: Sequence[RoundSummary], axis: Axis) -> list[float]:
    """The x position of each held-out score or aha, on the axis of these rounds: after the round that it followed or came in."""
    ends = [item.round if isinstance(item, HeldOutScore) else round_number(item.round) for item in items]
    match axis:
        case "round":
            return [float(end) for end in ends]
        case "clock":
            return [item.at for item in items]
        case "elapsed":
            numbers, worked = [summary.round for summary in summaries], [0.0, *seconds_worked(summaries)]
            return [worked[min(bisect_left(numbers, end), len(worked) - 1)] for end in ends]


def pauses(summaries: Sequence[RoundSummary]) -> list[PauseSpan]:
    """Pauses between consecutive rounds."""
    gaps = []
    for before, after in pairwise(summaries):
        start, end = before.at, after.at - after.seconds
        if after.round == before.round + 1 and end - start > SHORTEST_PAUSE:
            gaps.append(PauseSpan(start, end))
    return gaps


def comparable_spans(summaries: Sequence[RoundSummary], held_out_scores: Sequence[HeldOutScore]) -> list[tuple[int, int]]:
    """The places (first, end) of rounds whose rewards can be compared: another swarm or other questions begin a new span."""
    numbers = [summary.round for summary in summaries]
    exams = [exam for exam in by_question_set(held_out_scores) if not exam[0].early]
    starts = [bisect_left(numbers, exam[0].round) for exam in exams[1:]]
    edges = sorted({0, *(start for start in starts if start < len(numbers)), len(numbers)})
    return list(pairwise(edges))


def specialty_rewards(summaries: Sequence[RoundSummary]) -> dict[str, Stretch]:
    """The trend of the reward of each specialty, by the places of the rounds that asked about it."""
    curves: dict[str, Stretch] = {}
    for place, summary in enumerate(summaries):
        for title, reward in summary.by_specialty.items():
            curves.setdefault(title, []).append((place, reward))
    return {title: _smoothed(curve, trend_width(len(curve))) for title, curve in curves.items()}


def peers_rewards(summaries: Sequence[RoundSummary]) -> list[Stretch]:
    """The trend of what peers' groups earned; a new stretch after more rounds without any than the trend is wide."""
    stretches: list[Stretch] = []
    width = trend_width(len(summaries))
    for place, summary in enumerate(summaries):
        if summary.external_reward is None:
            continue
        if not stretches or place - stretches[-1][-1][0] - 1 > width:
            stretches.append([])
        stretches[-1].append((place, summary.external_reward))
    return [_smoothed(stretch, width) for stretch in stretches]


def _smoothed(stretch: Stretch, width: int) -> Stretch:
    places, rewards = zip(*stretch, strict=True)
    return list(zip(places, trend(rewards, width), strict=True))


def peers_reward_now(stretches: Sequence[Stretch], count: int) -> float | None:
    """The end of the last stretch; None if it ended more rounds before the last of `count` than the trend is wide."""
    if not stretches:
        return None
    place, reward = stretches[-1][-1]
    return reward if count - 1 - place <= trend_width(count) else None


def value_ticks(top: float, most: int = 6) -> list[float]:
    """Ticks of a value axis: round numbers from 0 to at least `top`, at most `most` of them."""
    for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0):
        count = math.ceil(top / step - 1e-9)
        if count < most:
            return [step * i for i in range(max(1, count) + 1)]
    return [0.0, 0.5, 1.0]


def time_ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Ticks of a time axis (seconds): a round number of seconds, minutes, hours or days apart, at most `most`."""
    step = next((step for step in TIME_STEPS if (high - low) / step <= most), math.ceil((high - low) / most / 86400) * 86400)
    first = math.ceil(low / step)
    return [float(step * i) for i in range(first, math.floor(high / step) + 1)]


def integer_ticks(low: float, high: float, most: int = 9) -> list[float]:
    """Ticks of an axis of whole numbers between two, at most `most` of them."""
    span = max(1.0, high - low)
    power = 10 ** math.floor(math.log10(span / most)) if span > most else 1
    step = next(step for step in (power, 2 * power, 5 * power, 10 * power) if span / step <= most)
    first = math.ceil(low / step)
    return [float(step * i) for i in range(first, math.floor(high / step) + 1)]
