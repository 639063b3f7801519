"""Reading and zooming the charts of Progress, with the mouse and with keys alone."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QCursor, QWheelEvent
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from gui.recorded import START, ready
from waggle.gui.application.main_window import MainWindow
from waggle.gui.charts.plotted.interactive_chart import InteractiveChart
from waggle.gui.charts.plotted.progress_charts import HeldOutChart, RewardChart
from waggle.gui.pages.progress.page import ProgressPage
from waggle.protocol import events
from waggle.protocol.state import AnyEvent

ROUNDS = 201


def run() -> list[AnyEvent]:
    """Two hundred rounds; peers are here from round 100 on, and the questions change at round 150."""
    story: list[AnyEvent] = [ready(round=0), events.PhaseChanged(phase="contributing", round=0)]
    for number in range(ROUNDS):
        summary = events.RoundSummary(
            round=number, at=START + 60.0 * number, reward=0.1 if number < 150 else 0.5, solved=0.1, seconds=50.0, completions=64,
            external_reward=0.3 if number >= 100 else None,
        )  # fmt: skip
        story.append(events.RoundCompleted(summary=summary))
    for number in range(0, ROUNDS, 25):
        score = events.HeldOutScore(round=number, at=START + 60.0 * number, right=number // 10, total=100)
        score = replace(score, exam="first" if number < 150 else "second")
        story.append(events.HeldOutMeasured(score=score))
    return story


@pytest.fixture
def pointer() -> Iterator[None]:
    """Leaves the pointer where it was: what is below it counts as being read, also in later tests."""
    place = QCursor.pos()
    yield
    QCursor.setPos(place)


@pytest.fixture
def page(window_told: Callable[..., MainWindow], qtbot: QtBot, pointer: None) -> ProgressPage:
    window = window_told(run())
    window.show_page("progress")
    page = window.pages.of(ProgressPage)
    qtbot.waitUntil(lambda: page._reward is not None and bool(page._reward._labels))
    return page


@pytest.fixture
def charts(page: ProgressPage) -> tuple[HeldOutChart, RewardChart]:
    assert page._score_chart is not None
    assert page._reward is not None
    return page._score_chart, page._reward


def at(chart: InteractiveChart, round_number: float) -> QPoint:
    """The pixel of a round in the middle of a chart's height."""
    return QPoint(round(chart._pixel(round_number, 0.0).x()), chart.height() // 2)


def rows(chart: InteractiveChart) -> list[str]:
    overlay = chart._overlay
    return [overlay._heading, *(words for words, _ in overlay._rows)] if overlay._heading else []


def test_pointing_at_one_chart_reads_both(charts: tuple[HeldOutChart, RewardChart], qtbot: QtBot) -> None:
    scores, reward = charts
    QTest.mouseMove(reward.viewport(), at(reward, 120))
    qtbot.waitUntil(lambda: bool(rows(reward)))
    assert rows(reward)[0].startswith("Round 120, ")
    assert rows(reward)[1:] == ["You: 0.10 on average, 0.10 in this round", "Peers' examples to learn from: 0.30 on average"]
    assert rows(scores)[0].startswith("After 125 rounds, ")
    assert rows(scores)[1:] == ["12 of 100 right: 12.0% (7% to 20%)"]
    QApplication.sendEvent(reward, QEvent(QEvent.Type.Leave))
    assert rows(reward) == rows(scores) == []


def test_dragging_shows_a_part_in_both_and_a_double_click_the_whole(
    page: ProgressPage, charts: tuple[HeldOutChart, RewardChart], qtbot: QtBot
) -> None:
    scores, reward = charts
    assert page._whole.isHidden()
    QTest.mousePress(scores.viewport(), Qt.MouseButton.LeftButton, pos=at(scores, 40))
    QTest.mouseMove(scores.viewport(), at(scores, 80))
    assert scores._overlay._band is not None
    QTest.mouseRelease(scores.viewport(), Qt.MouseButton.LeftButton, pos=at(scores, 80))
    qtbot.waitUntil(lambda: not reward._labels and not scores._labels)
    assert page._part.ends == pytest.approx((40, 80), abs=0.5)
    for chart in charts:
        assert chart._ends == page._part.ends
        assert chart.viewRange()[0] == pytest.approx([40, 80], abs=1)
    assert not page._whole.isHidden()
    QTest.mouseDClick(scores.viewport(), Qt.MouseButton.LeftButton, pos=at(scores, 60))
    qtbot.waitUntil(lambda: bool(reward._labels))
    assert page._part.is_whole
    assert page._whole.isHidden()


def test_a_click_chooses_nothing(page: ProgressPage, charts: tuple[HeldOutChart, RewardChart]) -> None:
    QTest.mouseClick(charts[0].viewport(), Qt.MouseButton.LeftButton, pos=at(charts[0], 40))
    assert page._part.is_whole


@pytest.mark.parametrize(("modifiers", "down", "zooms"), [("ControlModifier", 120, True), ("NoModifier", -120, False)])
def test_the_wheel_scrolls_the_page_and_zooms_with_ctrl(
    page: ProgressPage, charts: tuple[HeldOutChart, RewardChart], modifiers: str, down: int, zooms: bool
) -> None:
    chart, spot = charts[1], QPointF(at(charts[1], 100))
    place = chart._place_at(spot)
    wheel = QWheelEvent(
        spot, QPointF(chart.viewport().mapToGlobal(spot)), QPoint(), QPoint(0, down), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier[modifiers], Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(chart.viewport(), wheel)
    assert wheel.isAccepted() == zooms
    assert page._part.is_whole != zooms
    if zooms:
        first, last = page._part.ends
        assert (place - first) / (last - first) == pytest.approx(place / ROUNDS), "what is under the pointer stays there"


def test_keys_alone_read_zoom_move_and_go_back(page: ProgressPage, charts: tuple[HeldOutChart, RewardChart]) -> None:
    scores, reward = charts
    scores.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(scores, Qt.Key.Key_Left)
    assert page._part.place == 200, "the newest first"
    assert scores.accessibleDescription().startswith("After 200 rounds, ")
    assert "20 of 100 right" in scores.accessibleDescription()
    QTest.keyClick(scores, Qt.Key.Key_Left)
    assert page._part.place == 175
    assert rows(reward)[0].startswith("Round 175, ")
    QTest.keyClick(scores, Qt.Key.Key_Plus)
    assert page._part.ends == pytest.approx((35.0, 195.8))
    QTest.keyClick(scores, Qt.Key.Key_Left, Qt.KeyboardModifier.ShiftModifier)
    assert page._part.ends == pytest.approx((18.92, 179.72))
    QTest.keyClick(scores, Qt.Key.Key_0)
    assert page._part.is_whole
    scores.clearFocus()
    assert page._part.place is None


def test_the_axis_may_change_while_a_part_is_shown(page: ProgressPage) -> None:
    page._part.choose(20, 40)
    page._axis.choose(2)
    assert page._part.is_whole
    assert page._part.ends[0] >= START


def test_the_lines_break_where_the_questions_change(charts: tuple[HeldOutChart, RewardChart]) -> None:
    reward = charts[1]
    mean = dict(zip(reward._x, reward._mine, strict=True))
    assert (mean[150], mean[151]) == pytest.approx((0.1, 0.5)), "no mean over both"
    curves = [list(item.xData) for item in reward.getPlotItem().items if getattr(item, "xData", None) is not None]
    own = [curve for curve in curves if curve and (curve[0], curve[-1]) in ((reward._x[0], 150), (151, 201))]
    assert len(own) == 4, "the faint line and the mean, twice"


@pytest.mark.parametrize("name", ["progress.svg", "progress.png"])
def test_a_picture_has_what_is_on_the_page_and_no_reading(page: ProgressPage, tmp_path: Path, name: str) -> None:
    page._part.read(100.0)
    page.save(tmp_path / name)
    assert page._part.place is None
    content = (tmp_path / name).read_bytes()
    if name.endswith("svg"):
        assert QSvgRenderer(str(tmp_path / name)).isValid()
        assert "clipPath" in content.decode()
        assert "Score on new questions" in content.decode()
    else:
        assert content.startswith(b"\x89PNG")
