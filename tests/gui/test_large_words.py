"""Words of any size that Settings offer, in the smallest window that everything must fit into."""

from itertools import pairwise

import pytest
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QToolButton

from gui.conftest import Told
from pictures.matrix import SIZE
from waggle.gui.frame import PAGES, RailButton
from waggle.gui.look import Look
from waggle.gui.paint import Chip
from waggle.gui.parts import Line, Segments
from waggle.gui.round_table import COLUMNS, RoundTableView
from waggle.gui.still import settled
from waggle.protocol import events
from waggle.protocol.state import AnyEvent
from waggle.settings import Settings

PERCENTS = (80, 100, 130, 150, 200)


@pytest.mark.parametrize("percent", PERCENTS)
def test_pages_can_be_chosen_whatever_the_size_of_their_names(
    window_told: Told, told: list[AnyEvent], look: Look, percent: int
) -> None:
    look.set_text(percent)
    window = window_told(told, *SIZE)
    settled(window)
    buttons = sorted(window.rail.findChildren(RailButton), key=lambda made: made.y())
    assert len(buttons) == len(PAGES)
    assert all(above.geometry().bottom() < below.geometry().top() for above, below in pairwise(buttons))
    assert buttons[-1].geometry().bottom() < window.rail.height()
    for button in buttons:
        alone = button.toolButtonStyle() == QToolButton().toolButtonStyle()  # the icon
        assert button.toolTip() == (button.accessibleName() if alone else "")
        assert alone == (percent > 130)


@pytest.mark.parametrize("percent", PERCENTS)
def test_no_choice_and_no_chip_is_cut(window_told: Told, told: list[AnyEvent], look: Look, percent: int) -> None:
    look.set_text(percent)
    window = window_told(told, *SIZE)
    for page in PAGES:
        window.show_page(page)
        settled(window)
        shown = window.pages[page]
        choices = [one for one in shown.findChildren(Segments) if one.isVisible()]
        cut = [
            (one.accessibleName(), one.width(), one.sizeHint().width()) for one in choices if one.width() < one.sizeHint().width()
        ]
        assert not cut, page
        for chip in shown.findChildren(Chip):
            assert chip.height() >= chip.fontMetrics().height() * percent / 100 * 0.7


@pytest.mark.parametrize("percent", PERCENTS)
def test_rounds_as_a_table_lose_columns_and_no_words(window_told: Told, told: list[AnyEvent], look: Look, percent: int) -> None:
    look.set_text(percent)
    window = window_told(told, *SIZE)
    window.show_page("progress")
    page = window.pages["progress"]
    page._as_table.click()
    settled(window)
    (view,) = page.findChildren(RoundTableView)
    seen = [place for place in range(len(COLUMNS)) if not view.isColumnHidden(place)]
    assert {"Round", "Held-out", "Reward", "Right"} <= {COLUMNS[place] for place in seen}
    for place in seen:
        assert view.horizontalHeader().sectionSizeHint(place) <= view.columnWidth(place), COLUMNS[place]


@pytest.mark.parametrize("percent", PERCENTS)
def test_home_says_how_many_cores_it_uses(window_told: Told, told: list[AnyEvent], look: Look, percent: int) -> None:
    look.set_text(percent)
    window = window_told([*told, events.SettingsChanged(settings=Settings(), at=told[-1].at)], *SIZE)
    assert window.home.hero.profile.isVisible()
    settled(window)
    (says,) = (line for line in window.home.findChildren(Line) if " cores with " in line.words() and line.isVisible())
    assert says.width() >= QFontMetricsF(look.font("small")).horizontalAdvance(says.words().split(" with ")[0])
