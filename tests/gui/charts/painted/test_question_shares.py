"""Test the bars that show how a node's questions are spread over its specialties."""

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtWidgets import QApplication

from gui.conftest import TellWindow
from waggle.gui.charts.painted.question_shares import QuestionShareBars, share_text, share_words
from waggle.gui.i18n import translator
from waggle.gui.pages.progress.page import ProgressPage
from waggle.gui.theme.theme import Theme
from waggle.protocol.events import QuestionsDrawn, QuestionShare
from waggle.protocol.state import AnyEvent

LOGIC = QuestionShare(specialty="Logic", levels={"easy": 0.05, "standard": 0.2, "hard": 0.15})
FRACTIONS = QuestionShare(specialty="Fractions", levels={"easy": 0.6})


def bars_of(theme: Theme, *shares: QuestionShare, width: int = 800) -> QuestionShareBars:
    bars = QuestionShareBars(theme)
    bars.show_shares(shares)
    bars.resize(width, bars.height())
    bars.grab()  # delivers the new size, and paints
    return bars


@pytest.mark.parametrize(("share", "words"), [(0.0, "0.0%"), (0.0052, "0.5%"), (0.0949, "9%"), (0.01, "1%"), (1.0, "100%")])
def test_small_shares_are_not_rounded_to_nothing(qapp: QApplication, share: float, words: str) -> None:
    assert share_text(share) == words


def test_levels_are_named_where_there_are_several(qapp: QApplication) -> None:
    assert share_words(LOGIC) == "Logic 40%: easy 5% · standard 20% · hard 15%"
    assert share_words(FRACTIONS) == "Fractions 60%"
    translator.use("de")
    assert share_words(LOGIC) == "Logik 40\u202f%: leicht 5\u202f% · üblich 20\u202f% · schwer 15\u202f%"


def test_a_title_is_one_line_of_plain_text(qapp: QApplication) -> None:
    assert share_words(QuestionShare(specialty="<b>a\u202eb\n</b>", levels={"easy": 1.0})) == "<b>a\ufffdb </b> 100%"


@pytest.mark.parametrize(("shares", "full"), [((0.14, 0.11), 0.2), ((0.6, 0.4), 1.0), ((0.5,), 0.5), ((), 1.0)])
def test_a_full_bar_is_a_round_share_with_room_for_all(theme: Theme, shares: tuple[float, ...], full: float) -> None:
    assert bars_of(theme, *(QuestionShare(specialty="Logic", levels={"easy": share}) for share in shares)).full == full


def test_all_shares_are_read_out(theme: Theme) -> None:
    bars = bars_of(theme, LOGIC, FRACTIONS)
    assert bars.accessibleDescription() == f"{share_words(FRACTIONS)}; {share_words(LOGIC)}", "the largest first"


def test_the_words_under_the_mouse_are_those_of_the_bar_there(theme: Theme) -> None:
    bars = bars_of(theme, LOGIC, FRACTIONS)
    assert bars.words_at(QPointF(5, 5)) == share_words(FRACTIONS)
    assert bars.words_at(QPointF(bars.place_of(1).left() + 5, 5)) == share_words(LOGIC)
    bars.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    assert bars.words_at(QPointF(bars.width() - 5, 5)) == share_words(FRACTIONS)
    assert bars.words_at(QPointF(5, 5)) == "", "of three columns the last one is empty"


@pytest.mark.parametrize("width", [150, 300, 500, 900])
@pytest.mark.parametrize("count", [1, 9, 64])
def test_every_bar_is_inside_and_none_on_another(theme: Theme, width: int, count: int) -> None:
    bars = bars_of(theme, *[LOGIC] * count, width=width)
    places = [bars.place_of(number) for number in range(count)]
    assert all(place.left() >= 0 and place.right() <= bars.width() + 0.5 for place in places)
    assert max(place.bottom() for place in places) <= bars.height() + 10, "without the space below the last row"
    assert not any(place.intersects(other) for number, place in enumerate(places) for other in places[:number])


def test_progress_shows_the_shares_where_there_is_more_than_one(window_told: TellWindow, written: tuple[AnyEvent, ...]) -> None:
    def card_is_visible(*shares: QuestionShare) -> bool:
        window = window_told([*written, QuestionsDrawn(round=700, epoch=1, groups=(), group_size=8, shares=shares)])
        window.show_page("progress")
        return window.pages.of(ProgressPage)._shares.isVisible()

    assert card_is_visible(LOGIC, FRACTIONS)
    assert card_is_visible(LOGIC)
    assert not card_is_visible(FRACTIONS), "there is nothing to compare"
    assert not card_is_visible(), "an engine of before did not say"
