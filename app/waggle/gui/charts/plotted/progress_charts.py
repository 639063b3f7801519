"""The two charts of Progress. Imports pyqtgraph, so load it only when that page is first opened."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np
from PySide6.QtCore import Qt

from waggle.core.confidence_interval import interval_of
from waggle.core.text.round_number import round_number
from waggle.gui.charts.plotted.annotated_chart import EventMark, PauseBand
from waggle.gui.charts.plotted.axis import round_words
from waggle.gui.charts.plotted.chart import EndLabel
from waggle.gui.charts.plotted.chart_reading import Reading, Value
from waggle.gui.charts.plotted.interactive_chart import InteractiveChart
from waggle.gui.charts.plotted.measured_legend import ALONE, WITH_PEERS, measured_pen
from waggle.gui.charts.plotted.run_curves import RunCurve, run_curves
from waggle.gui.charts.plotted.visible_part import VisiblePart
from waggle.gui.i18n.formatting import clock, date_of, day, decimal, duration, figure, one_line, peer_name, percent, plural, tr
from waggle.gui.state import chart_series
from waggle.gui.state.chart_series import Axis
from waggle.gui.state.measured_curves import MeasuredCurves, measured_curves, measured_lines
from waggle.gui.theme.theme import Theme
from waggle.protocol.events import Aha, HeldOutScore, RoundSummary, TrainingRun
from waggle.protocol.state import State

MOST_POINTS = 1500
AHAS = 3  # the newest, which are named until the curve reaches them, and to a screen reader


class HeldOutChart(InteractiveChart):
    """The held-out score with its 95% interval; the card that holds it names the newest one."""

    def __init__(self, theme: Theme, part: VisiblePart) -> None:
        super().__init__(theme, tr("Score on new questions by round; the table shows the same"), part, shows_axis=True)
        self._scores: list[tuple[float, HeldOutScore]] = []  # with their places
        self._references: list[ReferenceCurve] = []
        self._runs: list[RunCurve] = []
        self._ahas: list[EventMark] = []

    def show_state(self, state: State, axis: Axis, bands: Sequence[PauseBand], runs: Sequence[TrainingRun] = ()) -> None:
        """`runs`: earlier ones to draw faint beside it, where the axis counts rounds."""
        rounds, scores = chart_series.rounds(state), chart_series.scores(state)
        ends = self._part.ends
        exams = [
            _curve_of(exam, chart_series.event_positions(exam, rounds, axis)) for exam in chart_series.by_question_set(scores)
        ]
        self._scores = list(zip([x for exam in exams for x in exam.x], scores, strict=True))
        references = self._references = _references(state, axis, ends[1])
        others = self._runs = run_curves(runs, self._part.whole[1]) if axis == "round" else []
        values = [(exam.x, exam.high) for exam in exams]
        values += [*((curve.x, curve.shares) for curve in references), *((run.x, run.shares) for run in others)]
        highest = max([0.1, *(value for x, y in values for value in _between(ends, x, y))])
        self.begin(highest, shares=True, x=ends, axis=axis, labelled=self._part.has_newest)
        for band in bands:
            self.draw_pause_band(band, named=True)
        ahas = self._ahas = aha_marks(state, axis, ends) if scores else []
        changes = [mark for mark in _changes(exams) if ends[0] <= mark.x <= ends[1]]
        names = [f"{mark.words}, {round_words(mark.round)}" for mark in (*ahas[:AHAS], *changes)]
        names += [reference.words for reference in references]
        names += [_run_words(curve) for curve in others]
        self.setAccessibleName(". ".join([self._name, *names]))
        if not scores:
            return
        for reference in references:
            self.draw_curve(reference.x, reference.shares, self.pen(*measured_pen(self.theme, reference.line)))
        for curve in others:
            self.draw_curve(curve.x, curve.shares, self.pen(*measured_pen(self.theme, curve.line)))
        for exam in exams:
            self.draw_interval(exam.x, exam.low, exam.high)
        for mark in _unplaced(ahas, exams[-1].x[-1]):
            self.mark_aha(mark, named=True)
        for mark in changes:
            self.mark_question_change(mark)
        for exam in exams:
            self.draw_line(exam.x, exam.shares, "accent_line", Qt.PenStyle.SolidLine, width=2.6, dots=len(scores) < 30)
            for mark in ahas:
                if exam.x[0] <= mark.x <= exam.x[-1]:
                    self.pin_aha(mark, float(np.interp(mark.x, exam.x, exam.shares)))
        self.place_notes()

    def places(self) -> list[float]:
        return [x for x, _ in self._scores]

    def reading(self, place: float) -> Reading | None:
        """The nearest score, and the curves that were measured elsewhere at this place."""
        if not self._scores:
            return None
        x, score = self._scores[_nearest(self.places(), place)]
        low, high = interval_of(score.right, score.total)
        words = tr("%1 of %2 right: %3 (%4 to %5)").replace("%1", figure(score.right)).replace("%2", figure(score.total))
        share = score.right / score.total if score.total else 0.0
        words = words.replace("%3", percent(share, 1)).replace("%4", percent(low)).replace("%5", percent(high))
        values = [Value(words, "accent_line", x, share)]
        for curve in self._references:
            if not curve.x[0] <= place <= curve.x[-1]:  # nothing was measured there
                continue
            at = float(np.interp(place, curve.x, curve.shares))
            values.append(Value(f"{curve.label}: {percent(at)}", "text_faint", place, at))
        for run in self._runs:
            if run.x[0] <= place <= run.x[-1]:
                at = float(np.interp(place, run.x, run.shares))
                values.append(Value(f"{run.label}: {percent(at)}", run.line[0], place, at))
        first, last = self._part.ends
        near = [mark for mark in self._ahas if abs(mark.x - place) <= (last - first) / 100]
        values += [Value(mark.words, "accent") for mark in near]
        after = plural(score.round, "After %n round", "After %n rounds")
        return Reading(f"{after}, {_moment(score.at)}", tuple(values))


class ScoreSeries(msgspec.Struct, frozen=True):
    """Scores on the same questions: x position, share of right answers and 95% interval of each."""

    round: int  # of the first score
    x: list[float]
    shares: list[float]
    low: list[float]
    high: list[float]
    early: bool = False  # on a few of the questions that come later


class ReferenceCurve(msgspec.Struct, frozen=True):
    """A curve that was measured elsewhere, up to the end of the axis; `words` tell its last point to screen readers."""

    x: list[float]
    shares: list[float]
    line: tuple[str, Qt.PenStyle]
    words: str
    label: str


def shown_curves(state: State, axis: Axis) -> MeasuredCurves | None:
    """The curves that were measured elsewhere, where the axis counts rounds: other computers take another time for one."""
    return measured_curves(state) if axis == "round" else None


def _references(state: State, axis: Axis, last: float) -> list[ReferenceCurve]:
    """Both curves up to the round `last`; they begin where the model came to this swarm."""
    if shown_curves(state, axis) is None:
        return []
    references = []
    for measured in measured_lines(state, chart_series.by_question_set(chart_series.scores(state)), last):
        line, who = (ALONE, tr("alone")) if measured.is_alone else (WITH_PEERS, tr("with peers"))
        words = tr("Measured elsewhere, %1: %2 after %3").replace("%1", who)
        words = words.replace("%2", percent(measured.shares[-1])).replace("%3", round_words(int(measured.rounds[-1])))
        label = tr("Measured elsewhere, %1").replace("%1", who)
        references.append(ReferenceCurve(list(measured.rounds), list(measured.shares), line, words, label))
    return references


def _run_words(curve: RunCurve) -> str:
    words = tr("Earlier run, %1: %2 after %3").replace("%1", curve.label)
    return words.replace("%2", percent(curve.shares[-1])).replace("%3", round_words(int(curve.x[-1])))


def _curve_of(scores: Sequence[HeldOutScore], x: list[float]) -> ScoreSeries:
    shares = [score.right / score.total if score.total else 0.0 for score in scores]
    low, high = zip(*(interval_of(score.right, score.total) for score in scores), strict=True)
    return ScoreSeries(scores[0].round, x, shares, list(low), list(high), scores[0].early)


def _changes(exams: Sequence[ScoreSeries]) -> list[EventMark]:
    """A mark between the last score on some questions and the first on others, newest first."""
    marks = []
    for before, after in pairwise(exams):
        words = tr("More questions from here on") if before.early and not after.early else tr("The questions change here")
        marks.append(EventMark((before.x[-1] + after.x[0]) / 2, words, after.round))
    return marks[::-1]


class RewardChart(InteractiveChart):
    """The reward of training answers: a faint line for each round, a strong one for the trend, a dashed one for that of peers.

    The lines break where another swarm or other questions begin: what is earned there cannot be compared.
    """

    def __init__(self, theme: Theme, part: VisiblePart) -> None:
        super().__init__(theme, tr("Reward by round; the table shows the same"), part, shows_axis=True)
        self._x: list[float] = []
        self._rounds: list[RoundSummary] = []
        self._mine: list[float] = []
        self._peers: dict[int, float] = {}  # trend by the place of a round

    def show_state(self, state: State, axis: Axis, bands: Sequence[PauseBand]) -> None:
        rounds = self._rounds = chart_series.rounds(state)
        peers = chart_series.peers_rewards(rounds)
        self._peers = {place: reward for stretch in peers for place, reward in stretch}
        raw = [summary.reward for summary in rounds]
        spans, width = chart_series.comparable_spans(rounds, chart_series.scores(state)), chart_series.trend_width(len(raw))
        mine = self._mine = [mean for first, end in spans for mean in chart_series.trend(raw[first:end], width)]
        x, ends = chart_series.round_positions(rounds, axis), self._part.ends
        self._x = x
        visible = [[(place, reward) for place, reward in stretch if ends[0] <= x[place] <= ends[1]] for stretch in peers]
        top = chart_series.reward_ceiling(_between(ends, x, raw), _between(ends, x, mine), visible)
        self.begin(top, shares=False, x=ends, axis=axis, labelled=self._part.has_newest)
        for band in bands:
            self.draw_pause_band(band, named=False)
        if not rounds:
            return
        scores = chart_series.scores(state)
        placed = chart_series.event_positions(scores[-1:], rounds, axis)
        for mark in _unplaced(aha_marks(state, axis, ends), placed[0] if placed else math.inf):
            self.mark_aha(mark, named=False)
        every = max(1, len(_between(ends, x, raw)) // MOST_POINTS)
        for first, end in spans:
            self.draw_faint_curve(x[first:end:every], raw[first:end:every])
        self._draw_peers(peers, x)
        for first, end in spans:
            if end == len(x):
                self.draw_line(x[first:], mine[first:], "accent_line", Qt.PenStyle.SolidLine, width=2.6, dots=False)
            else:
                self.draw_curve(x[first:end], mine[first:end], self.pen(self.theme.colour("accent_line"), 2.6))
        if self._part.has_newest:
            self.draw_label(EndLabel(x[-1], mine[-1], f"   {tr('You')}  {decimal(mine[-1], 2)}", "accent_text"))
        self.spread_labels()

    def places(self) -> list[float]:
        return self._x

    def reading(self, place: float) -> Reading | None:
        """The nearest round: the mean around it and its own reward, and the mean of peers where there were any."""
        if not self._x:
            return None
        nearest = _nearest(self._x, place)
        summary, mean, x = self._rounds[nearest], self._mine[nearest], self._x[nearest]
        words = tr("You: %1 on average, %2 in this round")
        words = words.replace("%1", decimal(mean, 2)).replace("%2", decimal(summary.reward, 2))
        values = [Value(words, "accent_line", x, mean)]
        if (peers := self._peers.get(nearest)) is not None:
            values.append(
                Value(tr("Peers' examples to learn from: %1 on average").replace("%1", decimal(peers, 2)), "peer", x, peers)
            )
        words = tr("Round %1").replace("%1", figure(round_number(summary.round)))
        return Reading(f"{words}, {_moment(summary.at)}", tuple(values))

    def _draw_peers(self, stretches: Sequence[chart_series.Stretch], x: Sequence[float]) -> None:
        """Draw each stretch; a dot where the last one ends and a label at the end of the chart while peers are here."""
        reward = chart_series.peers_reward_now(stretches, len(x))
        for stretch in stretches:
            places, rewards = [x[place] for place, _ in stretch], [earned for _, earned in stretch]
            if len(stretch) == 1 or (stretch is stretches[-1] and reward is not None):
                self.draw_line(places, rewards, "peer", Qt.PenStyle.DashLine, width=2, dots=False)
            else:
                self.draw_curve(places, rewards, self.pen(self.theme.colour("peer"), 2, Qt.PenStyle.DashLine))
        if reward is not None and self._part.has_newest:
            self.draw_label(EndLabel(x[-1], reward, f"   {tr('Peers')}  {decimal(reward, 2)}", "peer"))


def _between(ends: tuple[float, float], x: Sequence[float], y: Sequence[float]) -> list[float]:
    """The values at places between both ends, and the neighbour at each side, to which the line goes."""
    first, last = bisect_left(x, ends[0]), bisect_right(x, ends[1])
    return list(y[max(0, first - 1) : last + 1])


def _nearest(places: Sequence[float], place: float) -> int:
    """The index of the nearest of some places, which are in order."""
    after = bisect_left(places, place)
    return min((at for at in (after - 1, after) if 0 <= at < len(places)), key=lambda at: abs(places[at] - place))


def _moment(at: float) -> str:
    return f"{day(date_of(at))} {clock(at)}"


def pause_bands(state: State, axis: Axis) -> list[PauseBand]:
    """The pauses to draw: on the clock axis only, and longer than a hundredth of it."""
    rounds = chart_series.rounds(state)
    if axis != "clock" or len(rounds) < 2:
        return []
    whole = rounds[-1].at - rounds[0].at
    pauses = [pause for pause in chart_series.pauses(rounds) if (pause.end - pause.start) * 100 > whole]
    words = tr("No rounds for %1")
    return [PauseBand(pause.start, pause.end, words.replace("%1", duration(pause.end - pause.start))) for pause in pauses]


def aha_marks(state: State, axis: Axis, ends: tuple[float, float]) -> list[EventMark]:
    """The ahas between both ends, newest first."""
    places = zip(state.ahas, chart_series.event_positions(state.ahas, chart_series.rounds(state), axis), strict=True)
    return [_aha_mark(aha, x, number) for number, (aha, x) in enumerate(places, 1) if ends[0] <= x <= ends[1]][::-1]


def _aha_mark(aha: Aha, x: float, number: int) -> EventMark:
    specialty, short = tr(one_line(aha.specialty)), tr("First right answer: %1")
    words = tr("%1: %2 was right first").replace("%2", peer_name(aha.name, aha.origin)) if aha.origin else short
    return EventMark(
        x, words.replace("%1", specialty), round_number(aha.round), short.replace("%1", specialty), number, bool(aha.origin)
    )


def _unplaced(ahas: Sequence[EventMark], last: float) -> Sequence[EventMark]:
    """The newest ahas, which have no place on the curve yet: `last` is where it ends."""
    return [mark for mark in ahas[:AHAS] if mark.x > last]


def axis_range(state: State, axis: Axis) -> tuple[float, float]:
    """The first and last x position of any point in either chart."""
    rounds = chart_series.rounds(state)
    positions = [
        *chart_series.round_positions(rounds, axis),
        *chart_series.event_positions(chart_series.scores(state), rounds, axis),
    ]
    if not positions:
        return 0.0, 1.0
    return min(positions), max(max(positions), min(positions) + 1)
