"""The first rounds as one large card: some questions, the model's tries, and what they are worth."""

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QResizeEvent
from PySide6.QtWidgets import QWidget

from waggle.gui.charts.painted.try_chips import TryChips
from waggle.gui.i18n.formatting import one_line, tr
from waggle.gui.state.story.tries import kind_of, merged_tries, most_telling, truth_of
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.layout import column, row
from waggle.gui.widgets.painted_widgets import Chip, PaintedWidget
from waggle.gui.widgets.text import text
from waggle.gui.widgets.typeset.typeset_text import TypesetText
from waggle.protocol.state import Card, State

MOST = 4  # questions
SMALLER = 0.8  # the size of tries, as a share of that on the stage
SIZES = ((60, "title"), (10_000, "strong"))  # fonts of a question, by its length in characters
OUTLINES, TILES, OUTLINE_HIGH = 4, 4, 124  # questions before there are any, tries at each, and pixels of height of both at least
BETWEEN = 28  # pixels below an outline
QUESTION_WIDE = (0.7, 0.5, 0.6, 0.45)  # of the width, for each outline of a question
QUESTION_HIGH, GAP = 76, 8  # pixels: a question at most, before text scaling; between parts


class TriedQuestion(QWidget):
    """A question, and the tries at it."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._question, self._specialty, self._tries = TypesetText(theme, SIZES), Chip(theme), TryChips(theme)
        self._question.set_scale(SMALLER)
        self._question.set_limit(theme.px(QUESTION_HIGH))
        self._tries.set_scale(SMALLER)
        head = row((self._question, 1), column(self._specialty, None), gap=12)
        self.setLayout(column(head, self._tries, gap=6, margins=(0, 6, 0, 6)))

    def show_card(self, card: Card) -> None:
        self._question.say(card.question)
        self._specialty.say(tr(one_line(card.specialty)), "plain")
        self._tries.show_tries([*merged_tries(card.completions), *truth_of(card)])

    def height_at(self, width: int) -> int:
        """The height in pixels at this width; while it is hidden, no layout sets it."""
        for part, room in ((self._question, width - self._specialty.sizeHint().width() - 12), (self._tries, width)):
            part.resize(room, part.height())
            part.fit()
        return self._question.height() + self._tries.height() + 18


class QuestionOutlines(PaintedWidget):
    """Where questions and tries will stand: as many outlines as there is room for, at most OUTLINES."""

    def draw(self, painter: QPainter, place: QRectF) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self.theme.colour("sunken"))
        high, line, gap = (self.theme.px(size) for size in (OUTLINE_HIGH, 18, GAP))
        count = min(OUTLINES, int(place.height()) // high)
        for number in range(count):
            top = place.top() + number * place.height() / count
            painter.drawRoundedRect(QRectF(place.left(), top, place.width() * QUESTION_WIDE[number], line), 6, 6)
            tile = place.height() / count - line - gap - self.theme.px(BETWEEN)
            wide = (place.width() - (TILES - 1) * gap) / TILES
            for column_number in range(TILES):
                beside = column_number * (wide + gap)
                painter.drawRoundedRect(QRectF(place.left() + beside, top + line + gap, wide, tile), 8, 8)


class FirstRound(QWidget):
    """Outlines until the first round was judged; then as many of its questions as there is room for."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._cards: list[Card] = []
        self._questions = [TriedQuestion(theme) for _ in range(MOST)]
        self._outlines = QuestionOutlines(theme)
        self.meaning = text(theme, "", "strong", wrap=True)
        self.setLayout(column(6, self.meaning, 2, *self._questions, (self._outlines, 1000), None, gap=GAP))

    @property
    def has_answers(self) -> bool:
        return bool(self._cards)

    def show_state(self, state: State) -> None:
        cards = most_telling(state.cards)[:MOST]
        if cards == self._cards and self.meaning.text():
            return
        self._cards = cards
        self._outlines.setVisible(not cards)
        for question, card in zip(self._questions, cards, strict=False):
            question.show_card(card)
        self.meaning.setText(_meaning(cards) if cards else tr("Its first answers appear here."))
        self._fit()

    def _fit(self) -> None:
        """Show the first question, and the others as long as they fit."""
        room = self.height() - self.meaning.heightForWidth(self.width()) - 3 * GAP
        for place, (question, known) in enumerate(zip(self._questions, self._known(), strict=True)):
            room -= question.height_at(self.width()) + GAP if known else 0
            question.setVisible(known and (place == 0 or room >= 0))

    def _known(self) -> list[bool]:
        """For each question whether there is a card to show in it."""
        return [place < len(self._cards) for place in range(MOST)]

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def hasHeightForWidth(self) -> bool:
        """Further questions ask for no room: they take what there is."""
        return False

    def minimumSizeHint(self) -> QSize:
        first = self._questions[0].height_at(self.width()) if self._cards else 0
        words = self.meaning.heightForWidth(self.width())
        return QSize(super().minimumSizeHint().width(), words + first + 3 * GAP)

    def sizeHint(self) -> QSize:
        return self.minimumSizeHint()


def _meaning(cards: Sequence[Card]) -> str:
    """What the tries at these questions mean for the model, in a sentence or two."""
    kinds = {kind_of(answer) for card in cards for answer in card.completions}
    if "right" in kinds:
        return tr("Some tries are right. It learns from what sets them apart from the others.")
    if "untagged" in kinds:
        return tr("It finds some right answers, but does not yet say which one is its answer. It learns that first.")
    return tr("None is right yet. It keeps trying, and learns from the first that are.")
