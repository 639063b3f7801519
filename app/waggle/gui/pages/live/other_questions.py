"""The other questions of a round below the one on the stage: a line each, with their tries where there is room."""

from collections.abc import Sequence

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from waggle.gui.charts.painted.try_line import TryLine
from waggle.gui.i18n.formatting import figure, one_line, tr
from waggle.gui.state.story.tries import card_tries, kind_of
from waggle.gui.state.story.typesetting import task_words
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.layout import as_widget, column, edges, row
from waggle.gui.widgets.painted_widgets import Icon
from waggle.gui.widgets.text import ElidedLabel, set_tip, text
from waggle.protocol.state import Card

MOST, FEWEST = 11, 2  # questions; for fewer than that no line is spent on the title
GAP, INDENT = 10, 26  # pixels between lines, and before the tries


def right_words(card: Card) -> str:
    """ "3 of 8 right"; empty before any is judged, and for a person's own answer."""
    judged = [answer for answer in card.completions if answer.judged]
    if not judged or card.by_hand:
        return ""
    right = sum(kind_of(answer) == "right" for answer in judged)
    return tr("%1 of %2 right").replace("%1", figure(right)).replace("%2", figure(len(judged)))


class QuestionLine(QWidget):
    """A question, and how many of its tries are right."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._sign = Icon(theme, "cross", "text_faint", 16)
        self._question, self._right = ElidedLabel(theme), ElidedLabel(theme, role="small", tone="text_soft", right=True)
        self._tries = TryLine(theme)
        self.tries = as_widget(column(self._tries, margins=edges(INDENT, 0, 0, 6)))
        self.setLayout(column(row(self._sign, (self._question, 1), self._right, gap=10), self.tries, gap=6))

    def show_card(self, card: Card) -> None:
        solved = any(kind_of(answer) == "right" for answer in card.completions)
        self._sign.show_icon(*(("check", "good") if solved else ("cross", "text_faint")))
        self._question.say(task_words(card.question))
        self._question.setAccessibleName(one_line(card.question))
        set_tip(self._question, one_line(card.question))
        self._tries.show_tries(card_tries(card))
        self._right.say(right_words(card), "good" if solved else "text_soft")

    def low_height(self) -> int:
        """Pixels without the tries."""
        return self._question.sizeHint().height()

    def height_with_tries(self, width: int) -> int:
        """Pixels at this width."""
        self._tries.resize(width - INDENT, self._tries.height())  # while it is hidden, no layout does
        self._tries.fit()
        return self.low_height() + self._tries.height() + 12


class OtherQuestions(QWidget):
    """Shows no more than `fit` has room for."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._cards: tuple[Card, ...] = ()
        self._height = 0.0
        self._fitted: object = None  # the cards, width and height for which the lines were fitted
        self._title = text(theme, tr("The other questions of this round"), "label", "soft")
        self._lines = [QuestionLine(theme) for _ in range(MOST)]
        self.setLayout(column(self._title, *self._lines, gap=GAP))

    def show_cards(self, cards: Sequence[Card]) -> None:
        if (newest := tuple(cards[:MOST])) == self._cards:
            return
        self._cards = newest
        for line, card in zip(self._lines, newest, strict=False):
            line.show_card(card)

    def fit(self, height: float) -> None:
        """Show as many as this height in pixels has room for."""
        self._height = height
        if (fitted := (self._cards, self.width(), height)) == self._fitted:
            return
        self._fitted = fitted
        room = height - self._title.sizeHint().height()
        lines = self._lines[: len(self._cards)]
        each = self._lines[0].low_height() + GAP
        count = min(len(lines), int(room // each))
        room -= count * each
        for place, line in enumerate(lines):  # the first show most
            more = line.height_with_tries(self.width()) - line.low_height()
            fits = place < count and more <= room
            line.tries.setVisible(fits)
            room -= more if fits else 0
        self.setVisible(count >= FEWEST)
        for place, line in enumerate(self._lines):
            line.setVisible(place < count)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.fit(self._height)
