"""Every text size of Settings fits into the smallest window."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations, pairwise

import pytest
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFontMetricsF, QImage
from PySide6.QtWidgets import QLabel, QLineEdit, QPushButton, QScrollArea, QWidget
from pytestqt.qtbot import QtBot

from gui.conftest import TellWindow
from gui.pages.progress.test_leaderboard import chosen, compared, opened, visible_words
from gui.state.test_race_state import STORY
from pictures.matrix import SIZE
from pictures.staged import show_answered_question
from pictures.staged_models import show_models
from waggle.core.settings import Settings
from waggle.gui.application.main_window import SMALLEST, MainWindow
from waggle.gui.application.screenshot import screenshot_when_still
from waggle.gui.application.window.navigation import RailButton
from waggle.gui.charts.painted import score_curve
from waggle.gui.charts.painted.heat_map import NAMED, HeatMap
from waggle.gui.charts.plotted.chart import LineChart
from waggle.gui.i18n import translator
from waggle.gui.i18n.formatting import tr
from waggle.gui.pages import PAGES
from waggle.gui.pages.home.page import HomePage
from waggle.gui.pages.live.question_card import QuestionCard
from waggle.gui.pages.live.round_stepper import BEHIND, BESIDE, CIRCLE, HERE, RoundStepper
from waggle.gui.pages.playground.page import PARTS, PlaygroundPage
from waggle.gui.pages.progress.page import ProgressPage
from waggle.gui.pages.progress.round_table import COLUMNS, RoundTableView
from waggle.gui.pages.swarms.page import SwarmsPage
from waggle.gui.state.story.round_steps import TITLES
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.page_header import TitleRow
from waggle.gui.widgets.controls.buttons import SegmentedControl
from waggle.gui.widgets.painted_widgets import Chip, Logo
from waggle.gui.widgets.text import LARGE, ElidedLabel, text
from waggle.protocol import events
from waggle.protocol.state import STAGES, AnyEvent, Card, State

PERCENTS = (80, 100, 130, 150, 200)


@pytest.mark.parametrize("percent", PERCENTS)
def test_pages_can_be_chosen_whatever_the_size_of_their_names_and_the_mark_stands_above_the_middle_of_their_icons(
    window_told: TellWindow, story: list[AnyEvent], theme: Theme, percent: int
) -> None:
    theme.set_text(percent)
    window = window_told(story, *SIZE)
    screenshot_when_still(window)
    buttons = sorted(window.rail.findChildren(RailButton), key=lambda button: button.y())
    assert len(buttons) == len(PAGES)
    assert all(above.geometry().bottom() < below.geometry().top() for above, below in pairwise(buttons))
    assert buttons[-1].geometry().bottom() < window.rail.height()
    (mark,) = window.rail.findChildren(Logo)
    for button in buttons:
        assert button.toolTip().partition("  ")[0] == button.accessibleName(), "behind it are the keys"
        assert button._bare == (percent >= 150), "the icon alone"
        middles = [part.mapTo(window.rail, part.rect().center()).x() for part in (mark, button)]
        assert percent in (80, 130) or abs(middles[0] - middles[1]) <= 1


@pytest.fixture(params=["en", "de", "pl"])
def spoken(request: pytest.FixtureRequest) -> Iterator[None]:
    translator.use(request.param)
    yield
    translator.use("en")


@pytest.mark.usefixtures("spoken")
def test_the_name_of_a_page_stands_clear_of_the_edge_of_its_tile(window_told: TellWindow, story: list[AnyEvent]) -> None:
    for button in window_told(story, *SIZE).rail.findChildren(RailButton):
        assert button.fontMetrics().horizontalAdvance(button.text()) + 8 <= button.width(), button.text()


@pytest.mark.usefixtures("spoken")
@pytest.mark.parametrize("percent", PERCENTS)
def test_on_no_page_anything_is_cut_or_out_of_sight(
    window_told: TellWindow, story: list[AnyEvent], theme: Theme, percent: int
) -> None:
    """Also in the smallest window. Pages scroll vertically only, so nothing may be wider than the window."""
    theme.set_text(percent)
    window = window_told([*story, events.SettingsChanged(settings=Settings(), at=story[-1].at)], *SMALLEST)
    assert window.size().toTuple() == SMALLEST
    for size in (SMALLEST, SIZE):
        window.resize(*size)
        for page in (*PAGES, "asked"):
            if page == "asked":
                show_answered_question(window)
            else:
                window.show_page(page)
            screenshot_when_still(window)
            nothing_is_cut(window.pages[window.page], percent, (size, page))
            if page == "you" and size == SMALLEST:
                the_days_stand_clear_of_their_names(window.pages["you"], theme)


@pytest.mark.usefixtures("spoken")
@pytest.mark.parametrize("percent", PERCENTS)
def test_models_are_compared_in_the_width_of_the_page_whatever_they_are_called(
    window_told: TellWindow, written: list[AnyEvent], theme: Theme, percent: int
) -> None:
    theme.set_text(percent)
    window = window_told([*written, chosen()], *SMALLEST)
    page = opened(window)
    window._store.take(compared(True, False, models=("Qwen2.5-0.5B-Instruct", "w" * 64), ranked=True))
    window._store.flush()
    for size in (SMALLEST, SIZE):
        window.resize(*size)
        screenshot_when_still(window)
        nothing_is_cut(page, percent, (size, "compared"))
        assert tr("95% interval") in visible_words(page).split("\n")


def nothing_is_cut(view: QWidget, percent: int, where: tuple[tuple[int, int], str]) -> None:
    """Widgets that are smaller than they need: segments, chips and lines in width, scrolls in width, headers in height."""
    lines = [label for label in view.findChildren(QLabel) if label.isVisible() and label.text() and not label.wordWrap()]
    narrow = [line.text() for line in lines if not isinstance(line, ElidedLabel) and line.width() < line.sizeHint().width()]
    assert not narrow, where
    whole = [widget for kind in (SegmentedControl, Chip) for widget in view.findChildren(kind) if widget.isVisible()]
    cut = [(widget, widget.width(), widget.sizeHint().width()) for widget in whole if widget.width() < widget.sizeHint().width()]
    assert not cut, where
    for chip in view.findChildren(Chip):
        assert chip.height() >= chip.fontMetrics().height() * percent / 100 * 0.7, where
    areas = [area for area in view.findChildren(QScrollArea) if area.isVisible()]
    over = [max(area.widget().width(), area.widget().minimumSizeHint().width()) - area.viewport().width() for area in areas]
    assert all(wider <= 0 for wider in over), (where, over)
    heads = [top.height() - top.minimumSizeHint().height() for top in view.findChildren(TitleRow)]
    assert all(higher >= 0 for higher in heads), (where, heads)


@pytest.mark.parametrize("percent", PERCENTS)
def test_in_a_card_what_was_learned_gives_way_before_the_specialty(theme: Theme, qtbot: QtBot, percent: int) -> None:
    theme.set_text(percent)
    question_card = QuestionCard(theme, set())
    qtbot.addWidget(question_card)
    question_card.resize(782, 400)
    card = Card(
        key="k", origin="x", name="Brisk Otter", round=217, at=0.0, specialty="Base conversion", question="Convert " * 20,
        completions=(events.ShownCompletion(text="22", judged=True, reward=1.0), events.ShownCompletion(text="23", judged=True)),
        effects=(1, 0),
    )  # fmt: skip
    question_card.show_card(card, State(), 60.0)
    arranged = question_card.layout()
    assert arranged is not None
    arranged.activate()
    assert question_card._specialty.width() == question_card._specialty.sizeHint().width()
    assert question_card._foot.width() < question_card._foot.sizeHint().width()


def the_days_stand_clear_of_their_names(you: QWidget, theme: Theme) -> None:
    (calendar,) = you.findChildren(HeatMap)
    first, names = calendar.place_of(calendar._first()), QFontMetricsF(theme.font("caption"))
    assert max(names.horizontalAdvance(tr(name)) for name in NAMED.values()) < first.left()
    assert names.height() <= first.top()
    (line,) = calendar.parentWidget().findChildren(ElidedLabel)
    assert first.bottom() + 6 * calendar._step() < line.y()


def raced(window: MainWindow) -> None:
    window.show_page("playground", "race")
    for message in STORY:
        window.pages.of(PlaygroundPage).race.take(message)


VIEWS: dict[str, Callable[[MainWindow], None]] = {
    "join": lambda window: window.pages.of(SwarmsPage).show_join(),
    "create": lambda window: window.pages.of(SwarmsPage).show_form(),
    "invite": lambda window: window.show_page("swarms", "invite"),
    **{part: partial(MainWindow.show_page, name="playground", part=part) for part in PARTS},
    "raced": raced,
}


def short_of_room(within: QWidget) -> list[tuple[str, int, int]]:
    """Visible labels, fields and buttons that are lower than they need to be, with both heights."""
    kinds: tuple[type[QWidget], ...] = (QLabel, QLineEdit, QPushButton)
    visible = [widget for kind in kinds for widget in within.findChildren(kind) if widget.isVisibleTo(within)]
    high = [
        (widget, widget.heightForWidth(widget.width()) if widget.hasHeightForWidth() else widget.minimumSizeHint().height())
        for widget in visible
    ]
    return [(widget.accessibleName(), widget.height(), needed) for widget, needed in high if widget.height() < needed]


def has_room(within: QWidget) -> bool:
    """Whether nothing is cut. To be waited for: what is scrolled out of sight may settle after the picture."""
    return not short_of_room(within)


def overlapping(within: QWidget) -> list[tuple[QWidget, QWidget]]:
    pairs = []
    for parent in (within, *within.findChildren(QWidget)):
        parts = [child for child in parent.children() if isinstance(child, QWidget) and not child.isHidden()]
        if parent.layout() is not None and parent.isVisibleTo(within):
            pairs += [(part, other) for part, other in combinations(parts, 2) if part.geometry().intersects(other.geometry())]
    return pairs


@pytest.mark.usefixtures("spoken")
@pytest.mark.parametrize("percent", [100, 150, 200])
def test_no_view_of_swarms_and_of_try_it_is_cut(
    window_told: TellWindow, story: list[AnyEvent], theme: Theme, percent: int, qtbot: QtBot
) -> None:
    theme.set_text(percent)
    window: MainWindow = window_told(story, *SMALLEST)
    window.show_page("swarms")
    for view, show in VIEWS.items():
        show(window)
        screenshot_when_still(window)
        page = window.pages[window.page]
        areas = [area for area in page.findChildren(QScrollArea) if area.isVisible()]
        assert areas or view == "chat", view  # which has nothing to scroll before something is said
        for area in areas:
            inner = area.widget()
            assert max(inner.width(), inner.minimumSizeHint().width()) <= area.viewport().width(), view
            qtbot.waitUntil(partial(has_room, inner))
            assert not overlapping(inner), view
        whole = [segments for segments in page.findChildren(SegmentedControl) if segments.isVisible()]
        assert all(segments.width() >= segments.sizeHint().width() for segments in whole), view


def test_home_says_how_many_cores_it_uses_to_whoever_points_at_the_processor(
    window_told: TellWindow, story: list[AnyEvent]
) -> None:
    home = window_told([*story, events.SettingsChanged(settings=Settings(), at=story[-1].at)], *SIZE).pages.of(HomePage)
    assert home.hero.profile.isVisible()
    assert home.cost.cpu.words().endswith("%")
    assert " of 2 core" in home.cost.cpu.toolTip()


def inked(image: QImage, start: int, end: int) -> tuple[list[int], list[int]]:
    """The x positions, and between two of them the y positions, at which something is painted."""
    ground = image.pixel(0, 0)
    pixels = [(x, y) for x in range(start, end) for y in range(image.height()) if image.pixel(x, y) != ground]
    return sorted({x for x, _y in pixels}), sorted({y for _x, y in pixels})


@pytest.mark.parametrize("percent", PERCENTS)
@pytest.mark.parametrize("role", ["hero", "display", "title", "heading", "body"])
def test_the_dots_of_a_capital_are_whole(qapp: object, theme: Theme, percent: int, role: str) -> None:
    theme.set_text(percent)
    for widget in (text(theme, "Über", role), ElidedLabel(theme, "Über", role)):
        rows = []
        for more in (0, 40):
            widget.resize(widget.sizeHint() + QSize(0, more))
            rows.append(len(inked(widget.grab().toImage(), 0, widget.width())[1]))
        assert rows[0] >= rows[1] - (role not in LARGE)


@pytest.mark.parametrize("percent", PERCENTS)
def test_rounds_as_a_table_lose_columns_and_no_words_and_a_figure_ends_where_its_head_does(
    window_told: TellWindow, story: list[AnyEvent], theme: Theme, percent: int
) -> None:
    theme.set_text(percent)
    window = window_told(story, *SIZE)
    window.show_page("progress")
    page = window.pages["progress"]
    assert isinstance(page, ProgressPage)
    page._as_table.click()
    screenshot_when_still(window)
    (view,) = page.findChildren(RoundTableView)
    visible = [place for place in range(len(COLUMNS)) if not view.isColumnHidden(place)]
    assert {"Round", "Test score", "Reward", "Right"} <= {COLUMNS[place] for place in visible}
    for place in visible:
        assert view.horizontalHeader().sectionSizeHint(place) <= view.columnWidth(place), COLUMNS[place]
    head, place = view.horizontalHeader(), COLUMNS.index("Round")
    start, end = head.sectionViewportPosition(place), head.sectionViewportPosition(place) + view.columnWidth(place)
    above, below = head.grab().toImage(), view.viewport().grab().toImage()
    above, below = above.copy(0, 2, above.width(), above.height() - 6), below.copy(0, 0, below.width(), view.rowHeight(0) - 2)
    ends = [max(inked(image, start + 4, end)[0]) for image in (above, below)]
    assert abs(ends[0] - ends[1]) <= 2
    assert ends[1] < end - 8


@pytest.mark.parametrize("percent", PERCENTS)
def test_the_figures_beside_the_curve_on_home_are_whole(theme: Theme, percent: int) -> None:
    theme.set_text(percent)
    curve = score_curve.ScoreCurve(theme)
    curve.resize(600, theme.px(160))
    scores = tuple(events.HeldOutScore(round=25 * i, at=1.0, right=20 * i, total=270) for i in range(5))
    curve.show_state(State(held_out=scores))
    image = curve.grab().toImage()
    figures, _ = inked(image, 0, theme.px(score_curve.BEFORE) - 8)
    assert figures[-1] - figures[0] > QFontMetricsF(theme.font("caption")).horizontalAdvance("40%") - 4
    share, _ = inked(image, 600 - theme.px(score_curve.BEHIND) + 6, 600)
    assert share[-1] - share[0] > QFontMetricsF(theme.font("heading")).horizontalAdvance("30%") - 4


@pytest.mark.parametrize("percent", PERCENTS)
def test_charts_keep_their_figures_and_names(window_told: TellWindow, story: list[AnyEvent], theme: Theme, percent: int) -> None:
    theme.set_text(percent)
    window = window_told(story)
    window.show_page("progress")
    screenshot_when_still(window)
    for chart in window.pages["progress"].findChildren(LineChart):
        image = chart.grab().toImage()
        _, rows = inked(image, 0, theme.px(40))
        figures = 1 + sum(after - before > 1 for before, after in pairwise(rows))
        assert figures == len(chart.getAxis("left")._tickLevels[0]) > 1
        places = [note.sceneBoundingRect() for note, _label in chart._labels]
        assert all(chart.getViewBox().sceneBoundingRect().right() >= place.right() for place in places)
        assert all(abs(place.center().y() - other.center().y()) >= theme.px(16) for place, other in pairwise(places))


@pytest.mark.parametrize("percent", PERCENTS)
def test_the_steps_of_a_round_are_whole(qapp: object, theme: Theme, percent: int) -> None:
    theme.set_text(percent)
    stepper = RoundStepper(theme)
    stepper.resize(1600, stepper.height())
    stepper.show_state(
        State(phase="contributing", stage="judge")
    )  # "Judge" and "judging", one below the other, go below their lines
    _, rows = inked(stepper.grab().toImage(), 2 * 266 + 46, 3 * 266 - 40)
    high = [
        QFontMetricsF(theme.font(role)).tightBoundingRect(words).height()
        for role, words in (("label", "Judge"), ("caption", "judging"))
    ]
    assert len(rows) >= sum(high) - 2


@pytest.mark.usefixtures("spoken")
@pytest.mark.parametrize("percent", PERCENTS)
@pytest.mark.parametrize("phase", ["contributing", "paused"])
def test_a_step_says_its_title_whole_or_leaves_it_to_the_tooltip(
    qapp: object, theme: Theme, percent: int, phase: events.Phase
) -> None:
    theme.set_text(percent)
    stepper, metrics, counts = RoundStepper(theme), QFontMetricsF(theme.font("label")), QFontMetricsF(theme.font("caption"))
    for width in range(700, 1400, 50):
        stepper.resize(width, stepper.height())
        for now in (None, *STAGES):
            stepper.show_state(State(phase=phase, stage=now))
            widths, bare = stepper.widths()
            assert sum(widths) <= width + 1
            visible = [(wide, tr(TITLES[stage])) for stage, wide in zip(STAGES, widths, strict=True) if not bare or stage == now]
            for wide, title in visible:
                room = wide - 2 * CIRCLE - BESIDE - BEHIND
                assert metrics.elidedText(title, Qt.TextElideMode.ElideRight, room + 0.1) == title
            stepper.grab()
            assert all(tr(title) in stepper.toolTip() for title in TITLES.values()) == stepper.is_cut()
            for wide, (_, _, when, words) in zip(widths, stepper._steps, strict=True):
                if when in HERE:
                    room = wide - 2 * CIRCLE - BESIDE - BEHIND
                    assert counts.elidedText(words, Qt.TextElideMode.ElideRight, room + 0.1) == words
    assert not bare  # at the width that it has in a wide window


@pytest.mark.usefixtures("spoken")
@pytest.mark.parametrize("percent", [100, 150, 200])
@pytest.mark.parametrize("state", ["used", "results", "downloading", "gated", "none"])
def test_no_state_of_models_is_cut(
    window_told: TellWindow, story: list[AnyEvent], theme: Theme, percent: int, state: str, qtbot: QtBot
) -> None:
    theme.set_text(percent)
    window: MainWindow = window_told(story, *SMALLEST)
    show_models(window, state)
    screenshot_when_still(window)
    (area,) = (area for area in window.pages["models"].findChildren(QScrollArea) if area.isVisible())
    inner = area.widget()
    assert max(inner.width(), inner.minimumSizeHint().width()) <= area.viewport().width()
    qtbot.waitUntil(partial(has_room, inner))
    assert not overlapping(inner)
