"""The first rounds as one large card: some questions, the model's tries, and what they are worth."""

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QResizeEvent
from PySide6.QtWidgets import QWidget

from waggle.gui.charts.painted.try_chips import TryChips
from waggle.gui.i18n.formatting import one_line, tr
from waggle.gui.state.story.tries import kind_of, merged_tries, most_telling, truth_of
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.layout import UNLIMITED, column, row
from waggle.gui.widgets.painted_widgets import Chip, PaintedWidget
from waggle.gui.widgets.text import text
from waggle.gui.widgets.typeset.typeset_text import TypesetText
from waggle.protocol.state import Card, State

MOST, OUTLINED = 8, 3  # questions, and outlines of them
LEAST_ROOM = 100  # pixels of height for a further question, before text scaling
SMALLER = 0.8  # the size of tries, as a share of that on the stage
SIZES = ((60, "title"), (10_000, "strong"))  # fonts of a question, by its length in characters
QUESTION_WIDE = (0.6, 0.42, 0.5)  # of the width, for each outline of a question
TRIES = (4, 2, 5)  # the outlines of tries at each of them
TILE_WIDE, TILE_HIGH, CHIP_WIDE = 104, 64, 72  # pixels of the outlines of tries and of a specialty, before text scaling
LINE_HIGH, BETWEEN = 16, 28  # pixels: the outline of a question, and below the outlines of its tries
QUESTION_HIGH, GAP = 76, 8  # pixels: a question at most, before text scaling; between parts
ABOVE, BELOW = 6, 2  # pixels around the words


class TriedQuestion(QWidget):
    """A question, and the tries at it."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._card: Card | None = None
        self._question, self._specialty, self._tries = TypesetText(theme, SIZES), Chip(theme), TryChips(theme)
        self._question.set_scale(SMALLER)
        self._question.set_limit(theme.px(QUESTION_HIGH))
        self._tries.set_scale(SMALLER)
        head = row((self._question, 1), column(self._specialty, None), gap=12)
        self.setLayout(column(head, self._tries, gap=6, margins=(0, 6, 0, 6)))

    def show_card(self, card: Card) -> None:
        if card == self._card:
            return
        self._card = card
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
    """Where questions, specialties and tries will stand: a few outlines, each paler than the one above."""

    def draw(self, painter: QPainter, place: QRectF) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        line, high, wide, chip = map(self.theme.px, (LINE_HIGH, TILE_HIGH, TILE_WIDE, CHIP_WIDE))
        gap, each = self.theme.px(GAP), line + high + self.theme.px(GAP + BETWEEN)
        fitting = min(OUTLINED, int((place.height() + self.theme.px(BETWEEN)) // each))
        for number in range(fitting):
            tone, top = self.theme.colour("sunken"), place.top() + number * each
            tone.setAlphaF(1 - number / fitting)
            painter.setBrush(tone)
            painter.drawRoundedRect(QRectF(place.left(), top, place.width() * QUESTION_WIDE[number], line), 6, 6)
            painter.drawRoundedRect(QRectF(place.right() - chip, top, chip, line), line / 2, line / 2)
            for place_in_row in range(TRIES[number]):
                beginning = place.left() + place_in_row * (wide + gap)
                if beginning + wide <= place.right():
                    painter.drawRoundedRect(QRectF(beginning, top + line + gap, wide, high), 8, 8)


class FirstRound(QWidget):
    """Outlines until the first round was judged; then as many of its questions as there is room for."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._cards: list[Card] = []
        self._theme = theme
        self._questions: list[TriedQuestion] = []  # each is made once there is room for it
        self._outlines = QuestionOutlines(theme)
        self.meaning = text(theme, "", "strong", wrap=True)
        self._box = column(ABOVE, self.meaning, BELOW, (self._outlines, 1000), None, gap=GAP)
        self.setLayout(self._box)

    def highest(self) -> int:
        """The most pixels of height that it can use: those of all outlines. Questions can use all that there are."""
        if self._cards:
            return UNLIMITED
        words = self._box.contentsMargins().top() + ABOVE + self.meaning.heightForWidth(self.width()) + BELOW + 3 * GAP
        return words + OUTLINED * self._theme.px(LINE_HIGH + GAP + TILE_HIGH + BETWEEN + GAP)

    @property
    def has_answers(self) -> bool:
        return bool(self._cards)

    def show_state(self, state: State) -> None:
        cards = most_telling(state.cards)[:MOST]
        if cards == self._cards and self.meaning.text():
            return
        self._cards = cards
        self._outlines.setVisible(not cards)
        self._box.setContentsMargins(0, 0 if cards else 14, 0, 0)
        self.meaning.setText(_meaning(cards) if cards else tr("Its first answers appear here."))
        self._fit()

    def _fit(self) -> None:
        """Show the first question, and of the others each that fits. What has no room is not set either: that takes long."""
        room = self.height() - self.meaning.heightForWidth(self.width()) - 3 * GAP
        tried = 0
        for place, card in enumerate(self._cards):
            if place and room < self._theme.px(LEAST_ROOM):
                break
            if place == len(self._questions):
                self._add_question()
            question, tried = self._questions[place], place + 1
            question.show_card(card)
            high = question.height_at(self.width()) + GAP
            fits = place == 0 or high <= room
            question.setVisible(fits)
            room -= high if fits else 0
        for question in self._questions[tried:]:
            question.hide()

    def _add_question(self) -> None:
        question = TriedQuestion(self._theme)
        self._box.insertWidget(self._box.indexOf(self._outlines), question)
        self._questions.append(question)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def hasHeightForWidth(self) -> bool:
        """Further questions ask for no room: they take what there is."""
        return False

    def minimumSizeHint(self) -> QSize:
        first = self._questions[0].height_at(self.width()) if self._cards and self._questions else 0
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
        return tr("It finds right answers, but does not mark them with the answer tag yet. It learns that first.")
    return tr("None is right yet. It keeps trying, and learns from the first that are.")
