"""The other questions of a round below the one on the stage: a line each, with the tries of those that were solved, or of all."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from waggle.gui.charts.painted.try_line import TryLine
from waggle.gui.i18n.formatting import figure, one_line, tr
from waggle.gui.state.story.tries import card_tries, is_fruitless, kind_of
from waggle.gui.state.story.typesetting import task_words
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.layout import as_widget, column, edges, row
from waggle.gui.widgets.painted_widgets import Chip, Icon
from waggle.gui.widgets.text import ElidedLabel, set_tip, text
from waggle.protocol.state import Card

MOST, FEWEST = 11, 2  # questions; for fewer than that no line is spent on the title
GAP, INDENT = 10, 26  # pixels between lines, and before the tries
LARGER = (1.6, 1.4, 1.2)  # sizes of tries, as multiples of the usual one: as large as there is room for


def arrows_key(theme: Theme) -> ElidedLabel:
    """What the arrows at answers mean."""
    return ElidedLabel(theme, f"\u2191 {tr('more likely next time')}    \u2193 {tr('less likely')}", "caption", "text_soft")


def right_words(card: Card) -> str:
    """ "3 of 8 right"; empty before any is judged, and for a person's own answer."""
    judged = [answer for answer in card.completions if answer.judged]
    if not judged or card.by_hand:
        return ""
    right = sum(kind_of(answer) == "right" for answer in judged)
    return tr("%1 of %2 right").replace("%1", figure(right)).replace("%2", figure(len(judged)))


class QuestionLine(QWidget):
    """A question, and how many of its tries are right. `pressed` carries the key of its card."""

    pressed = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._key = ""
        self.is_fruitless = True
        self._sign, self._specialty = Icon(theme, "cross", "text_faint", 16), Chip(theme)
        self._question, self._right = ElidedLabel(theme), ElidedLabel(theme, role="small", tone="text_soft", right=True)
        self._tries = TryLine(theme)
        self._tries.pressed.connect(lambda: self.pressed.emit(self._key))
        self.tries = as_widget(column(self._tries, margins=edges(INDENT, 0, 0, 6)))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        head = row(self._sign, self._specialty, (self._question, 1), self._right, gap=10)
        self.setLayout(column(head, self.tries, gap=6))

    def show_card(self, card: Card) -> None:
        self._key, self.is_fruitless = card.key, is_fruitless(card)
        solved = any(kind_of(answer) == "right" for answer in card.completions)
        self._sign.show_icon(*(("check", "good") if solved else ("cross", "text_faint")))
        self._specialty.say(tr(one_line(card.specialty)), "plain")
        self._question.say(task_words(card.question))
        self._question.setAccessibleName(one_line(card.question))
        set_tip(self._question, one_line(card.question))
        self._tries.show_tries(card_tries(card))
        self._right.say(right_words(card), "good" if solved else "text_soft")

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.pressed.emit(self._key)

    def low_height(self) -> int:
        """Pixels without the tries."""
        return max(self._question.sizeHint().height(), self._specialty.height())

    def height_of_tries(self, width: int, scale: float) -> int:
        """Pixels that the tries add at this width, in this size."""
        self._tries.resize(width - INDENT, self._tries.height())  # while it is hidden, no layout does
        self._tries.set_scale(scale)
        self._tries.fit()
        return self._tries.height() + 12


class OtherQuestions(QWidget):
    """Shows no more than `fit` has room for. `chosen` carries the key of the card that the person wants on the stage."""

    chosen = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._cards: tuple[Card, ...] = ()
        self._height = 0.0
        self._fitted: object = None  # the cards, width, height and so on for which the lines were fitted
        self._measured: object = None  # the cards and width for which `_usual` was measured
        self._usual: list[int] = []  # pixels of the tries of each card in their usual size
        self._title = text(theme, tr("The other questions of this round"), "label", "soft")
        self._key = arrows_key(theme)
        self._lines = [QuestionLine(theme) for _ in range(MOST)]
        for line in self._lines:
            line.pressed.connect(self.chosen)
        self.missing = 0  # questions that have no line
        self.explains = False  # whether there are arrows above, too: then what they mean is always said
        self.setLayout(column(row(self._title, None, self._key), *self._lines, gap=GAP))

    def show_cards(self, cards: Sequence[Card]) -> None:
        if (newest := tuple(cards[:MOST])) == self._cards:
            return
        self._cards = newest
        for line, card in zip(self._lines, newest, strict=False):
            line.show_card(card)

    def fit(self, height: float) -> None:
        """Show as many as this height in pixels has room for.

        All have their tries if there is room; else those that were solved, as in the list of all answers; else none.
        """
        self._height = height
        if (fitted := (self._cards, self.width(), height, self.explains)) == self._fitted:
            return
        self._fitted = fitted
        lines = self._lines[: len(self._cards)]
        each = self._lines[0].low_height() + GAP
        room = height - self._title.sizeHint().height()
        count = min(len(lines), int(room // each))
        count = count if count >= FEWEST else 0
        self.missing = len(lines) - count
        opened = self._opened(lines[:count], room - count * each) if count else set[int]()
        self._key.setVisible(self.explains or any(any(self._cards[place].effects) for place in opened))
        self.setVisible(bool(count))
        for place, line in enumerate(self._lines):
            line.tries.setVisible(place in opened)
            line.setVisible(place < count)

    def _opened(self, lines: Sequence[QuestionLine], room: float) -> set[int]:
        """The places of the lines whose tries have room, which are set in the largest size in which they have it."""
        self._measure()
        solved = [place for place, line in enumerate(lines) if not line.is_fruitless]
        for places in (list(range(len(lines))), solved):
            if (usual := sum(self._usual[place] for place in places)) <= room:
                self._enlarge([lines[place] for place in places], usual, room)
                return set(places)
        return set()

    def _measure(self) -> None:
        """Measure the tries in their usual size, once for these cards and this width: setting them takes time."""
        if (measured := (self._cards, self.width())) != self._measured:
            self._measured = measured
            self._usual = [line.height_of_tries(self.width(), 1.0) for line in self._lines[: len(self._cards)]]

    def _enlarge(self, lines: Sequence[QuestionLine], usual: float, room: float) -> None:
        for scale in LARGER:
            if usual * scale <= room and sum(line.height_of_tries(self.width(), scale) for line in lines) <= room:
                return
        for line in lines:
            line.height_of_tries(self.width(), 1.0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.fit(self._height)
