"""Charts on real screens: line widths on one of twice the density, and the placement of notes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace
from pyqtgraph import InfiniteLine, PlotCurveItem
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

import waggle
from gui.recorded import START, ready
from waggle.core.confidence_interval import interval_of
from waggle.gui.application.main_window import MainWindow
from waggle.gui.application.screenshot import screenshot_when_still
from waggle.gui.charts.plotted import progress_charts
from waggle.gui.charts.plotted.chart import LineChart
from waggle.gui.charts.plotted.measured_legend import MeasuredLegend
from waggle.gui.i18n import translator
from waggle.gui.pages.progress.page import ProgressPage
from waggle.gui.state.chart_series import AXES
from waggle.gui.state.measured_curves import all_measured
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.text import ElidedLabel
from waggle.protocol import events
from waggle.protocol.state import AnyEvent
from waggle.tasks.charter import Charter
from waggle.tasks.shipped_swarms import first_steps, first_swarm

SCRIPT = """
from PySide6.QtCore import Qt
from waggle.gui.application.main import application
from waggle.gui.charts.plotted.annotated_chart import AnnotatedChart, PauseBand
from waggle.gui.theme.theme import Theme

app = application()
chart = AnnotatedChart(Theme("light"), "chart", shows_axis=True)
chart.resize(300, 200)
chart.move(10, 10)
chart.show()
app.processEvents()
chart.begin(1.0, shares=True, x=(0.0, 3.0), axis="round")
chart.draw_pause_band(PauseBand(1.0, 2.0, "pause"), named=False)
chart.draw_line([0, 1, 2], [0, 1, 0], "peer", Qt.PenStyle.DashLine, width=2.6, dots=False)


def say():
    app.processEvents()
    grid, _pins, region, line, _dot = chart.getPlotItem().items
    print(chart.devicePixelRatioF(), grid.opts["pen"].widthF(), region.lines[0].pen.widthF(), line.opts["pen"].widthF())


say()
chart.move(1400, 10)
say()
chart.begin(1.0, shares=True, x=(0.0, 3.0), axis="round")
chart.draw_pause_band(PauseBand(1.0, 2.0, "pause"), named=False)
chart.draw_line([0, 1, 2], [0, 1, 0], "peer", Qt.PenStyle.DashLine, width=2.6, dots=False)
say()
chart.move(10, 10)
say()
"""


def test_lines_are_as_wide_on_a_dense_screen(tmp_path: Path) -> None:
    plain = {"y": 0, "width": 1280, "height": 800, "logicalDpi": 96, "logicalBaseDpi": 96, "dpr": 1}
    screens = [{"name": "plain", "x": 0, **plain}, {"name": "dense", "x": 1280, **plain}]
    configured = tmp_path / "screens.json"
    configured.write_text(json.dumps({"synchronousWindowSystemEvents": False, "windowFrameMargins": True, "screens": screens}))
    platform = f"offscreen:configfile={configured.name}"  # Qt takes no path with a colon, as Windows has them
    env = {
        **os.environ,
        "QT_QPA_PLATFORM": platform,
        "QT_SCREEN_SCALE_FACTORS": "plain=1;dense=2",
        "PYTHONPATH": str(Path(waggle.__file__).parents[1]),
    }
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=True
    )
    on_plain, on_dense = "1.0 1.0 1.0 2.6", "2.0 2.0 2.0 5.2"
    assert ran.stdout.splitlines() == [on_plain, on_dense, on_dense, on_plain]


AHAS = (
    events.Aha(round=614, at=START - 4000, specialty="Logic"),
    events.Aha(round=616, at=START - 180, specialty="Fractions", origin="p", name="Brisk\nOtter"),
    events.Aha(round=617, at=START - 160, specialty="<b>Sums</b>", origin="q", name="Immeasurably Thoughtful Hippopotamus"),
    events.Aha(round=624, at=START - 10, specialty="Chain sum"),
)


def unscored(story: list[AnyEvent]) -> list[AnyEvent]:
    """Without new scores, so that the curve ends at round 600, which the history has."""
    return [event for event in story if not isinstance(event, events.HeldOutMeasured)]


@pytest.mark.parametrize("size", [(1280, 800), (1024, 640)])
@pytest.mark.parametrize("axis", range(3))
def test_the_newest_ahas_stand_on_both_charts_clear_of_all_other_words(
    window_told: Callable[..., MainWindow], written: list[AnyEvent], qtbot: QtBot, size: tuple[int, int], axis: int
) -> None:
    window = window_told([*unscored(written), *(events.AhaHappened(aha=aha) for aha in AHAS)], *size)
    window.show_page("progress")
    page = window.pages["progress"]
    assert isinstance(page, ProgressPage)
    page._axis.choose(axis)
    scores, reward = page._score_chart, page._reward
    assert scores is not None
    assert reward is not None
    ends = progress_charts.axis_range(window._store.state, AXES[axis])
    qtbot.waitUntil(lambda: scores._ends == reward._ends == ends and len(scores._notes) == 3)
    screenshot_when_still(window)  # words are moved when they are painted
    for chart in (scores, reward):
        lines = [item for item in chart.getPlotItem().items if isinstance(item, InfiniteLine)]
        assert [(line.angle, line.pen.style()) for line in lines] == [(90, Qt.PenStyle.DashLine)] * 3
    words = [item for item, _ in (*scores._notes, *scores._labels)]
    assert all(item.isVisible() for item in words)
    boxes = [item.mapRectToScene(item.boundingRect()).adjusted(1, 1, -1, -1) for item in words]
    assert not any(item.intersects(other) for item, other in combinations(boxes, 2))
    plot = scores.getViewBox().sceneBoundingRect()
    assert all(plot.contains(box) for box in boxes)
    assert scores.accessibleName().endswith(
        ". First right answer: Chain sum, round 625."
        " <b>Sums</b>: Immeasurably Thoughtful Hippopotamus · q was right first, round 618."
        " Fractions: Brisk Otter · p was right first, round 617"
    )


def test_an_aha_that_the_curve_has_reached_is_a_pin_without_words(
    window_told: Callable[..., MainWindow], written: list[AnyEvent], qtbot: QtBot
) -> None:
    score = events.HeldOutScore(round=630, at=START, right=90, total=500)
    window = window_told([*written, *(events.AhaHappened(aha=aha) for aha in AHAS), events.HeldOutMeasured(score=score)])
    window.show_page("progress")
    page = window.pages.of(ProgressPage)
    assert page._score_chart is not None
    qtbot.waitUntil(lambda: page._score_chart is not None and not page._score_chart.is_empty)
    pins = [pin for group in page._score_chart.pins.groups() for pin in group.pins]
    assert len(pins) == len(AHAS)
    assert {pin.is_taught for pin in pins} == {False, True}, "found by itself, and after the answer of a peer"
    assert not any(mark.number for _, mark in page._score_chart._notes)


def test_scores_on_other_questions_are_another_line_beyond_a_dashed_one(
    window_told: Callable[..., MainWindow], written: list[AnyEvent], qtbot: QtBot
) -> None:
    scores = [events.HeldOutScore(round=number, at=START - 1, right=number // 100, total=60) for number in (620, 624)]
    window = window_told([*written, *(events.HeldOutMeasured(score=score) for score in scores)])
    window.show_page("progress")
    page = window.pages["progress"]
    assert isinstance(page, ProgressPage)
    qtbot.waitUntil(lambda: page._score_chart is not None and not page._score_chart.is_empty)
    assert page._score_chart is not None
    assert [[x for x, _, _ in curve][-2:] for curve in page._score_chart._intervals] == [[550.0, 600.0], [620.0, 624.0]]
    (line,) = [item for item in page._score_chart.getPlotItem().items if isinstance(item, InfiniteLine)]
    assert (line.value(), line.pen.style()) == (610.0, Qt.PenStyle.DashLine)
    assert page._score_chart.accessibleName().endswith(". The questions change here, round 620")


def test_a_low_chart_says_of_an_aha_what_and_a_higher_one_from_whom(
    window_told: Callable[..., MainWindow], written: list[AnyEvent], qtbot: QtBot
) -> None:
    window = window_told([*unscored(written), events.AhaHappened(aha=AHAS[1])], 1024, 600)
    window.show_page("progress")
    chart = window.pages.of(ProgressPage)._score_chart
    assert chart is not None
    qtbot.waitUntil(lambda: bool(chart._notes))
    assert [note.toPlainText() for note, _ in chart._notes] == ["First right answer: Fractions"]
    window.resize(1600, 1400)
    qtbot.waitUntil(lambda: chart.height() > 300)
    assert [note.toPlainText() for note, _ in chart._notes] == ["Fractions: Brisk Otter · p was right first"]


def climbing(swarm: Charter) -> list[AnyEvent]:
    """SmolLM2-135M in one of the shipped swarms, after 60 rounds."""
    (curves,) = all_measured()
    infos = [events.SpecialtyInfo(dataset=each.dataset, title=each.title, levels=each.levels) for each in swarm.specialties]
    begun = replace(ready(round=0), model="SmolLM2-135M-Instruct 134.5M", parameters=curves.weights, specialties=tuple(infos))
    story: list[AnyEvent] = [begun, events.PhaseChanged(phase="contributing", round=0)]
    for number in range(61):
        summary = events.RoundSummary(
            round=number, at=START + 60.0 * number, reward=0.1, solved=0.1, seconds=50.0, completions=64
        )
        story.append(events.RoundCompleted(summary=summary))
    for number in (0, 30, 60):
        story.append(events.HeldOutMeasured(score=events.HeldOutScore(round=number, at=START + 60.0 * number, right=8, total=80)))
    return story


@pytest.mark.parametrize(("swarm", "axis", "has_curves"), [
    (first_steps(), 0, True), (first_steps(), 1, False), (first_steps(), 2, False), (first_swarm(), 0, False),
])  # fmt: skip
def test_curves_that_were_measured_elsewhere_stand_beside_the_same_model_on_the_axis_of_rounds(
    window_told: Callable[..., MainWindow], qtbot: QtBot, swarm: Charter, axis: int, has_curves: bool
) -> None:
    window = window_told(climbing(swarm))
    window.show_page("progress")
    page = window.pages.of(ProgressPage)
    page._axis.choose(axis)
    qtbot.waitUntil(lambda: page._score_chart is not None and not page._score_chart.is_empty)
    screenshot_when_still(window)
    assert page._score_chart is not None
    lines = [item for item in page._score_chart.getPlotItem().items if isinstance(item, PlotCurveItem)]
    styles = {item.opts["pen"].style(): item for item in lines}
    references = [styles[style] for style in (Qt.PenStyle.DotLine, Qt.PenStyle.DashLine) if style in styles]
    ends = [(float(item.xData[-1]), round(float(item.yData[-1]), 3)) for item in references]
    assert ends == ([(61.0, 0.352), (61.0, 0.417)] if has_curves else []), "clipped where the own rounds end"
    assert page._measured.isVisible() == has_curves
    words = "Measured elsewhere, alone: 35% after round 61. Measured elsewhere, with peers: 42% after round 61"
    assert page._score_chart.accessibleName().endswith(words) == has_curves
    known = page._score_chart.reading(30.0)
    assert known is not None
    assert any(value.words.startswith("Measured elsewhere") for value in known.values) == has_curves
    page._score_chart._references = [replace(each, x=[10.0, 20.0], shares=[0.1, 0.2]) for each in page._score_chart._references]
    for place, measured in ((5.0, False), (15.0, has_curves), (30.0, False)):
        read = page._score_chart.reading(place)
        assert read is not None
        assert any(value.words.startswith("Measured elsewhere") for value in read.values) == measured, "no claim beyond its ends"


def test_the_legend_says_where_and_how_often_it_was_measured(theme: Theme, qtbot: QtBot) -> None:
    qtbot.addWidget(page := QWidget())
    legend = MeasuredLegend(theme)
    legend.setParent(page)
    legend.show_curves(all_measured()[0])
    words = [label.words() for label in legend.findChildren(ElidedLabel)]
    assert words == ["SmolLM2-135M on one graphics card, alone", "with 3 peers"]
    assert "6 runs alone" in legend.toolTip()
    assert "3 swarms" in legend.toolTip()
    translator.use("de")
    legend.show_curves(all_measured()[0])
    assert next(label.words() for label in legend.findChildren(ElidedLabel)) == "SmolLM2-135M auf einer Grafikkarte, allein"


def test_the_line_of_peers_is_drawn_where_they_were_and_has_a_label_while_they_are_here(
    window_told: Callable[..., MainWindow], written: list[AnyEvent], qtbot: QtBot
) -> None:
    def round_with_peers(number: int) -> events.RoundCompleted:
        reward = 0.2 if number < 21 else 0.4 if 100 <= number < 121 else None
        at = START + 60.0 * number
        summary = events.RoundSummary(round=number, at=at, reward=0.1, solved=0.1, seconds=50.0, completions=64)
        return events.RoundCompleted(summary=replace(summary, external_reward=reward))

    begun: list[AnyEvent] = [ready(round=0), events.PhaseChanged(phase="contributing", round=0)]
    window = window_told([*begun, *(round_with_peers(number) for number in range(141))])
    window.show_page("progress")
    chart = window.pages.of(ProgressPage)._reward
    assert chart is not None
    qtbot.waitUntil(lambda: bool(chart._labels))
    lines = [item for item in chart.getPlotItem().items if isinstance(item, PlotCurveItem)]
    stretches = [list(line.xData) for line in lines if line.opts["pen"].style() == Qt.PenStyle.DashLine]
    assert stretches == [list(range(1, 22)), list(range(101, 122))]
    assert [label.words.split()[0] for _, label in chart._labels] == ["You"], "they left 20 rounds ago"
    for number in range(141, 143):
        window._store.take(
            replace(round_with_peers(number), summary=replace(round_with_peers(number).summary, external_reward=0.3))
        )
    qtbot.waitUntil(lambda: [label.words.split()[0] for _, label in chart._labels] == ["Peers", "You"])


def test_ahas_newer_than_the_last_score_have_no_place_on_its_curve(
    window_told: Callable[..., MainWindow], written: list[AnyEvent], qtbot: QtBot
) -> None:
    story = unscored(written)
    ahas = [events.Aha(round=number, at=START, specialty=f"Logic {number}") for number in (590, 605, 620)]
    window = window_told([*story, *(events.AhaHappened(aha=aha) for aha in ahas)])
    window.show_page("progress")
    page = window.pages["progress"]
    assert isinstance(page, ProgressPage)
    qtbot.waitUntil(lambda: page._score_chart is not None and len(page._score_chart._notes) == 2)
    assert page._score_chart is not None
    screenshot_when_still(window)
    pins = [pin for group in page._score_chart.pins.groups() for pin in group.pins]
    assert [pin.x for pin in pins] == [591], "no place on a curve that ends before it"


def test_pins_that_would_cover_each_other_are_one_with_both_numbers(
    window_told: Callable[..., MainWindow], written: list[AnyEvent], qtbot: QtBot
) -> None:
    ahas = [events.Aha(round=number, at=START, specialty=f"Logic {number}") for number in (0, 400, 401, 402)]
    taught = events.Aha(round=403, at=START, specialty="Fractions", origin="p", name="Brisk Otter")
    window = window_told([*written, *(events.AhaHappened(aha=aha) for aha in (*ahas, taught))])
    window.show_page("progress")
    chart = window.pages.of(ProgressPage)._score_chart
    assert chart is not None
    screenshot_when_still(window)
    groups = chart.pins.groups()
    assert [group.words for group in groups] == ["1", "2\u20134", "5"]
    edge = chart.getViewBox().sceneBoundingRect().left()
    assert all(group.middle.x() - group.width / 2 > edge - 0.1 for group in groups), "none is cut"
    chart._part.choose(399, 404)
    qtbot.waitUntil(lambda: [group.words for group in chart.pins.groups()] == ["2", "3", "4", "5"])


@pytest.mark.parametrize("wide", [230, 260, 320, 400, 900])
def test_words_below_a_chart_do_not_run_together_however_narrow_it_is(theme: Theme, qtbot: QtBot, wide: int) -> None:
    chart = LineChart(theme, "chart", shows_axis=True)
    qtbot.addWidget(chart)
    chart.resize(wide, 200)
    with qtbot.waitExposed(chart):
        chart.show()
    chart.begin(1.0, shares=True, x=(0.0, 8.0), axis="round")
    metrics, pixel = QFontMetricsF(theme.font("caption")), chart.getViewBox().viewPixelSize()[0]
    (tick_levels,) = chart.getAxis("bottom")._tickLevels
    spans = [(at - half, at + half) for at, words in tick_levels if (half := metrics.horizontalAdvance(words) / 2 * pixel)]
    assert all(first[1] < second[0] for first, second in pairwise(spans)), tick_levels
    assert tick_levels[0] == (1.0, "1 round")
    assert (len(tick_levels) == 8) == (wide == 900), tick_levels


def test_where_more_questions_begin_is_said_and_a_lone_score_shows_its_interval(
    window_told: Callable[..., MainWindow], written: list[AnyEvent], qtbot: QtBot
) -> None:
    story = [event for event in written if not isinstance(event, events.HeldOutMeasured)]
    early = [events.HeldOutScore(round=number, at=START - 1, right=4, total=63, exam="few", early=True) for number in (618, 620)]
    whole = events.HeldOutScore(round=624, at=START - 1, right=90, total=270, exam="all")
    window = window_told([*story, *(events.HeldOutMeasured(score=score) for score in (*early, whole))])
    window.show_page("progress")
    page = window.pages["progress"]
    assert isinstance(page, ProgressPage)
    qtbot.waitUntil(lambda: page._score_chart is not None and not page._score_chart.is_empty)
    chart = page._score_chart
    assert chart is not None
    assert chart.accessibleName().split(". ")[1] == "More questions from here on, round 624"
    low, high = interval_of(90, 270)
    assert chart._intervals[-1] == [(624.0, low, high)]
    bars = [item.getData() for item in chart.getPlotItem().items if isinstance(item, PlotCurveItem)]
    assert [([624.0, 624.0], [low, high])] == [(list(x), list(y)) for x, y in bars if list(x) == [624.0, 624.0]]
    assert "270 unseen questions" in page._about_held.words()
