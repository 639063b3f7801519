"""The rows of answers to a question: label, text and verdict; and pale rows in their place before there are any."""

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from waggle.gui.i18n.formatting import reward, tr, visible, visible_lines
from waggle.gui.state.story.tries import KIND_SIGNS, KIND_WORDS, kind_of, says_more
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.drawing import mirror_box
from waggle.gui.widgets.layout import as_widget, column, edges, frame, row
from waggle.gui.widgets.painted_widgets import Chip, PaintedWidget
from waggle.gui.widgets.text import ElidedLabel, set_tip
from waggle.gui.widgets.typeset.highlighted_text import HighlightedText
from waggle.protocol.events import ShownCompletion

BARE = 7  # pixels: the indent of the icon of a tinted chip
UNJUDGED = "could not be judged"
NAMES, WIDEST_NAMES = 160, 240  # pixels of the labels at a text size of 100%, and at most: an answer needs some width, too
HIGH, APART, BESIDE = 30, 36, 12  # pixels of a pale row, from one to the next, and from its label to its well


def verdict_word(answer: ShownCompletion) -> str:
    """What an answer is, in a word; why, if nothing could judge it."""
    return tr(answer.reason) if answer.reason == UNJUDGED else tr(KIND_WORDS[kind_of(answer)])


class AnswerRow(QWidget):
    """One answer: label, text and verdict. While these are hidden, `guessed`: the person takes it for the present model's."""

    guessed = Signal()

    def __init__(
        self, theme: Theme, who: str, completion: ShownCompletion, *, hidden: bool, by_model: bool = False, now: bool = False
    ) -> None:
        super().__init__()
        now = now and not hidden
        name = ElidedLabel(theme, who, "label", "accent_text" if now else "text")
        name.setFixedWidth(min(theme.px(NAMES), WIDEST_NAMES))
        words = HighlightedText(theme, 1)
        words.say(completion.text, completion.start, completion.length if says_more(completion) else 0)
        words.setAccessibleName(f"{who}: {visible(completion.text)}")
        judged = reward(completion)
        self.as_text = "\n".join((who if hidden else f"{who}, {judged}", visible_lines(completion.text.strip())))
        tone, icon = ("bare", "help") if completion.reason == UNJUDGED else KIND_SIGNS[kind_of(completion)]
        chip = Chip(theme, verdict_word(completion), tone, icon)
        set_tip(chip, judged)
        well = frame("well", column(words, margins=(12, 5, 12, 5)))
        well.setProperty("now", now)
        guess = Button(theme, tr("This one"), small=True).with_name(tr("%1 is the model of now").replace("%1", who))
        guess.clicked.connect(self.guessed)
        before = theme.px(BARE) if tone == "bare" else 0  # so that the icons of plain and tinted chips line up
        self._judged = as_widget(row(chip, guess, None, margins=edges(0 if hidden else before, 0, 0, 0)))
        chip.setVisible(not hidden)
        guess.setVisible(hidden and by_model)
        self.wants = (guess if hidden else chip).sizeHint().width() + before
        self.setLayout(row(name, (well, 1), self._judged, gap=12))

    def set_room(self, width: int) -> None:
        """Set the width of the verdict in pixels, the same in all rows."""
        self._judged.setFixedWidth(width)


class PaleRows(PaintedWidget):
    """Labels and empty wells where the answers will stand."""

    def __init__(self, theme: Theme, names: tuple[str, ...]) -> None:
        super().__init__(theme, name=", ".join(names))
        self._names = names
        self.setFixedHeight(theme.px(APART) * len(names) - theme.px(APART - HIGH))

    def draw(self, painter: QPainter, place: QRectF) -> None:
        theme = self.theme
        high, name = theme.px(HIGH), min(theme.px(NAMES), WIDEST_NAMES)
        for number, words in enumerate(self._names):
            line = QRectF(0, number * theme.px(APART), place.width(), high)
            painter.setFont(theme.font("label"))
            painter.setPen(theme.colour("text_faint"))
            painter.drawText(line, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, words)
            painter.setPen(theme.colour("well_edge"))
            painter.setBrush(theme.colour("sunken"))
            painter.drawRoundedRect(mirror_box(painter, line.adjusted(name + BESIDE, 0.5, -0.5, -0.5), place), 8, 8)
