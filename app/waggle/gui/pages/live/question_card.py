"""A card of the Live feed: who asked the question, what was answered and how often, and what was learned from it."""

from collections import Counter

from msgspec.structs import replace
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QGuiApplication, QMouseEvent, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QMenu, QSizePolicy

from waggle.core.peer_id import fingerprint
from waggle.core.text.round_number import round_number
from waggle.gui.charts.painted.try_line import TryLine
from waggle.gui.i18n.formatting import (
    ago,
    figure,
    one_line,
    peer_name,
    plural,
    reward,
    tr,
    visible,
    visible_lines,
)
from waggle.gui.pages.live.other_questions import right_words
from waggle.gui.state.story.tries import KIND_SIGNS, card_tries, is_fruitless, kind_of, says_more, truth_of
from waggle.gui.state.story.typesetting import NumberGrid, grid_in, task_words
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.drawing import draw_chip
from waggle.gui.widgets.layout import column, row
from waggle.gui.widgets.painted_widgets import Avatar, Chip, Icon, PaintedWidget
from waggle.gui.widgets.text import ElidedLabel
from waggle.gui.widgets.typeset.highlighted_text import CARET, draw_highlighted_text, line_height, lines_of
from waggle.gui.widgets.typeset.number_grid import draw_grid
from waggle.gui.widgets.typeset.typeset_text import TypesetText
from waggle.protocol.events import RIGHT, ShownCompletion
from waggle.protocol.json_lines import LONGEST_SHOWN
from waggle.protocol.state import HALTED_PHASES, Card, State

WRONG = "wrong: "  # how the reason of a wrong answer begins, before the answer
LINES, OPEN_LINES = 2, 14  # of an answer in an open card, at least and at most
QUESTION = ((10_000, "strong"),)  # the font of a question
SMALLER = 0.5  # the size of grids, as a share of that on the stage
QUESTION_HIGH, GRID_HIGH = 48, 120  # pixels of a question in a closed card, and of one with a grid
COLUMNS, NARROW = 4, 720
BESIDE = 10  # pixels between a tile's edge and its words
SPECIALTY = 150  # pixels that the specialty's name keeps in a narrow card: what was learned is cut first


def is_unfinished(card: Card, state: State) -> bool:
    """Whether the round of this card is not over yet, so its answers may change."""
    return card.round >= state.round and state.phase in ("contributing", "finishing", *HALTED_PHASES)


def answer_chip(answer: ShownCompletion, *, going: bool) -> tuple[str, str, str]:
    """Text, tone and icon of an answer's chip. A wrong answer is grey, not red: the model learns from it."""
    if answer.judged:
        words = f"{tr('human')}  {reward(answer)}" if answer.human else reward(answer)
        return words, *KIND_SIGNS[kind_of(answer)]
    if answer.ended:
        return tr("written"), "bare", "check"
    return (tr("writing"), "bare", "pen") if going else (tr("not finished"), "bare", "cut")


EqualAnswers = tuple[ShownCompletion, int | None, int]  # an answer, the effect of learning on it, and how many are the same


def merged_answers(card: Card) -> list[EqualAnswers]:
    """The answers; once all are judged, equal ones with the same effect stand as one."""
    effects: tuple[int | None, ...] = (*card.effects, *(None for _ in card.completions))
    answers = list(zip(card.completions, effects, strict=False))
    if not all(answer.judged for answer, _ in answers):
        return [(answer, effect, 1) for answer, effect in answers]
    counts = Counter(answers)
    return [(answer, effect, count) for (answer, effect), count in counts.items()]


class AnswerTile(PaintedWidget):
    """One answer: a chip, two lines of text, how often it was given, and an arrow for the effect of learning."""

    pressed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._answer, self._lines = ShownCompletion(text=""), LINES
        self._counted: tuple[object, int] = (None, 0)  # text and width, and how many lines they take
        self._effect: int | None = None  # None until it is known
        self._mine = self._going = True
        self._count = 1
        self._grid: NumberGrid | None = None  # what stands in the answer tags, if it is a grid
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # models write from left to right
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def show_answer(self, answers: EqualAnswers, *, mine: bool, going: bool) -> None:
        answer, effect, count = answers
        if (effect, mine, going, count) == (self._effect, self._mine, self._going, self._count) and answer == self._answer:
            return
        self._answer, self._effect, self._mine, self._going, self._count = answer, effect, mine, going, count
        self._grid = grid_in(answer.text[answer.start : answer.start + answer.length] or answer.text) if answer.judged else None
        self.setAccessibleName(f"{self._verdict()[0]}: {visible(answer.text)}")
        self.update()

    def _verdict(self) -> tuple[str, str, str]:
        """Text, tone and icon of the chip, with the number of equal answers. A wrong answer stands below, and only there."""
        answer = self._answer
        if answer.length and answer.reason.startswith(WRONG):
            answer = replace(answer, reason=WRONG.removesuffix(": "))
        words, tone, sign = answer_chip(answer, going=self._going)
        return f"{words}  ×{figure(self._count)}" if self._count > 1 else words, tone, sign

    def show_lines(self, lines: int) -> None:
        self._lines = lines
        self.setFixedHeight(self.theme.size["chip"] + 24 + lines * line_height(self.theme.font("mono")))

    def lines_needed(self, most: int) -> int:
        """How many lines the whole text takes, up to `most`; counted again only if text or width changed. A grid is drawn."""
        if self._grid is not None:
            return min(LINES, most)
        key = self._words(), self.width(), most
        if key != self._counted[0]:
            self._counted = key, lines_of(self.theme, self._words(), self.width() - 2 * BESIDE, most)
        return self._counted[1]

    def _is_writing(self) -> bool:
        return self._going and not (self._answer.ended or self._answer.judged)

    def _words(self) -> str:
        return self._answer.text + (CARET if self._is_writing() else "")

    def sizeHint(self) -> QSize:
        return QSize(180, self.height())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.pressed.emit()

    def draw(self, painter: QPainter, place: QRectF) -> None:
        visible_share = self._effect is not None and self._effect > 0
        own = "accent_line" if self._mine else "peer"
        painter.setPen(QPen(self.theme.colour(own if visible_share else "well_edge"), 1.2 if visible_share else 1))
        painter.setBrush(self.theme.colour("surface" if visible_share else "sunken"))
        painter.drawRoundedRect(place.adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)
        inner = place.adjusted(BESIDE, 9, -BESIDE, -8)
        words, tone, sign = self._verdict()
        draw_chip(painter, self.theme, inner.topLeft() + QPointF(0, -1), words, tone, sign, room=inner.width() - 20)
        self._arrow(painter, inner)
        below = inner.adjusted(0, self.theme.size["chip"] + 5, 0, 0)
        if self._grid is not None:
            draw_grid(painter, self.theme, self._grid, below)
            return
        draw_highlighted_text(
            painter, self.theme, below, self._words(),
            start=self._answer.start, length=self._answer.length if self._answer.judged else 0, lines=self._lines,
            tone="text_soft" if self._effect == 0 and not self._mine else "text",
            match="match" if self._mine else "match_peer", tail=self._is_writing(),
        )  # fmt: skip

    def _arrow(self, painter: QPainter, inner: QRectF) -> None:
        if self._effect:
            up = "accent_text" if self._mine else "peer"
            place = QRectF(inner.right() - 14, inner.top() + 3, 14, 14)
            self.theme.draw_icon(painter, "up" if self._effect > 0 else "dip", up if self._effect > 0 else "text_faint", place)


def footer(card: Card, state: State) -> tuple[str, str, str]:
    """Icon, its colour, and a sentence on what was or will be done with the answers."""
    answers, effects = card.completions, card.effects
    if card.by_hand:
        return "share", "accent_text", tr("Your own answer, shared and labelled as human. Your model does not learn from it.")
    ended = sum(answer.ended or answer.judged for answer in answers)
    if not all(answer.judged for answer in answers):
        if card.mine and not is_unfinished(card, state):
            return "pause", "text_faint", tr("This round was not finished.")
        if ended < len(answers):
            return (
                "pen",
                "text_faint",
                tr("%1 of %2 answers are written.").replace("%1", str(ended)).replace("%2", str(len(answers))),
            )
        return "judge", "text_faint", tr("Waiting to be judged.")
    repeat = "" if card.mine else tr("Judged again on this computer. ")
    sign = ("up", "accent_text") if card.mine else ("shield", "peer")
    if not effects:
        late = card.mine and card.round < state.round
        words = tr("Not used for learning this round.") if late else tr("Waiting to be used for learning.")
        if late and is_fruitless(card):
            words = tr("No answer stood out, so nothing was learned.")
        return ("judge", "text_faint", repeat + words) if card.mine else (*sign, repeat + words)
    if any(effects):
        return *sign, repeat + _lesson_text(card)
    return "judge" if card.mine else "shield", "text_faint", repeat + tr("No answer stood out, so nothing was learned.")


def _lesson_text(card: Card) -> str:
    likelier, less = sum(effect > 0 for effect in card.effects), sum(effect < 0 for effect in card.effects)
    if card.mine or less:
        words = plural(likelier, "%n answer more likely next time", "%n answers more likely next time")
        return words + (tr(", %1 less likely.").replace("%1", str(less)) if less else ".")
    right = all(answer.reward >= RIGHT for answer, effect in zip(card.completions, card.effects, strict=False) if effect > 0)
    learned = (
        plural(likelier, "You learned from %n right answer", "You learned from %n right answers") if right
        else plural(likelier, "You learned from %n answer", "You learned from %n answers")
    )  # fmt: skip
    ignored = len(card.effects) - likelier
    return learned + (plural(ignored, " and ignored %n miss.", " and ignored %n misses.") if ignored else ".")


class QuestionCard(QFrame):
    """Shows one card at a time and is reused for the next. `opened`: the keys of all cards that the person opened, shared."""

    def __init__(self, theme: Theme, opened: set[str]) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._theme = theme
        self._card: Card | None = None
        self._going = True
        self._opened = opened
        self._columns = COLUMNS
        self._face, self._who = Avatar(theme, 24), ElidedLabel(theme, role="label")
        self._key = ElidedLabel(theme, role="caption", tone="text_faint")  # the fingerprint of a peer's key
        self._specialty, self._question = Chip(theme), TypesetText(theme, QUESTION)
        self._question.set_scale(SMALLER)
        self._when = ElidedLabel(theme, role="small", tone="text_faint", right=True)
        self._sign, self._foot = Icon(theme, "pen", "text_faint"), ElidedLabel(theme, role="small", tone="text_soft")
        self._brief = ElidedLabel(theme)  # the question, in a card that is folded
        self._right = ElidedLabel(theme, role="label", tone="text_soft", right=True)
        self._reader = Button(theme, tr("Show answers"), "link")
        self._reader.clicked.connect(self._toggle)
        self._more = Button(theme, "", "link", "more").with_name(tr("More"))
        self._menu = QMenu(self._more)
        self._menu.addAction(tr("Copy question and answers"), self._copy)
        self._more.setMenu(self._menu)
        for button in (self._reader, self._more):
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # as for the feed: a click must not hold it
        self._tries = TryLine(theme)
        self._tries.pressed.connect(self._press)
        self._tiles: list[AnswerTile] = []  # whole answers, in an open card
        self._tile_state: tuple[Card | None, bool, int] = None, True, 0  # the card in the tiles, and how many answers of it
        self._grid = QGridLayout()
        self._grid.setSpacing(8)
        head = row(
            row(self._face, self._who, self._key, gap=8), self._specialty,
            row(self._sign, (self._foot, 1), (self._brief, 1), gap=6),
            row(self._reader, self._right, gap=12), row(self._when, self._more, gap=6), gap=12,
        )  # fmt: skip
        head.setStretch(2, 1)
        head.addStrut(theme.px(24))  # so that a button that appears moves nothing
        self.setLayout(column(head, self._question, self._tries, self._grid, gap=8, margins=(18, 10, 18, 12)))

    def show_card(self, card: Card, state: State, now: float) -> None:
        if self._card is None or card.key != self._card.key:
            self._show_head(card, state)
        self._when.say(_time_text(card, state, now))
        sign, ink, words = footer(card, state)
        self._sign.show_icon(sign, ink)
        self._foot.say(words)
        going = is_unfinished(card, state)
        if card is self._card and going == self._going:
            return
        self._card, self._going = card, going
        self._tries.show_tries(card_tries(card), going=going)
        self._right.say(right_words(card))
        self._right.setVisible(bool(self._right.words()))
        self._fit()

    def _show_head(self, card: Card, state: State) -> None:
        own = state.ready.node if state.ready else "me"
        self._face.show_identity(own if card.mine else card.origin, mine=card.mine)
        self._who.say(tr("You") if card.mine else one_line(card.name))
        self._key.say(one_line(fingerprint(card.origin)))
        self._key.setVisible(not card.mine)
        for part in (self._face, self._who, self._when):
            part.setVisible(not card.mine or card.by_hand)  # the heading above says it of the model's own
        self._specialty.say(tr(one_line(card.specialty)), "plain" if card.mine else "peer")
        self._specialty.setMinimumWidth(min(self._theme.px(SPECIALTY), self._specialty.sizeHint().width()))
        self._question.say(card.question)
        self._brief.say(task_words(card.question))
        question = one_line(card.question)
        who = self._who.words() if card.mine else peer_name(card.name, card.origin)
        self.setAccessibleName(f"{who}: {question}")
        self._more.setAccessibleName(f"{tr('More')}: {question}")

    def _show_answers(self) -> None:
        """Show the whole answers of an open card, and none of a closed one."""
        card = self._card
        answers = merged_answers(card) if card is not None and self._reads_whole else []
        if (card, self._going, len(answers)) == self._tile_state:
            return
        self._tile_state = card, self._going, len(answers)
        while len(self._tiles) < len(answers):
            tile = AnswerTile(self._theme)
            tile.pressed.connect(self._press)
            self._tiles.append(tile)
            self._place(len(self._tiles) - 1)
        for i, tile in enumerate(self._tiles):
            tile.setVisible(i < len(answers))
            if card is not None and i < len(answers):
                tile.show_answer(answers[i], mine=card.mine, going=self._going)
        self._stretch_columns()

    def _place(self, index: int) -> None:
        self._grid.addWidget(self._tiles[index], index // self._columns, index % self._columns)

    def _stretch_columns(self) -> None:
        """All tiles are equally wide, also where equal answers left fewer of them."""
        answers = len(self._card.completions) if self._card is not None else 0
        for place in range(max(self._columns, self._grid.columnCount())):
            self._grid.setColumnStretch(place, 1 if place < min(self._columns, answers) else 0)

    def set_columns(self, columns: int) -> None:
        if columns == self._columns:
            return
        self._columns = columns
        for i in range(len(self._tiles)):
            self._place(i)
        self._stretch_columns()

    @property
    def is_open(self) -> bool:
        return self._card is not None and self._card.key in self._opened

    @property
    def _is_folded(self) -> bool:
        """Whether the card is a line. `is_open` opens it, as it shows the whole answers of others."""
        return self._card is not None and not self.is_open and is_fruitless(self._card)

    @property
    def _reads_whole(self) -> bool:
        """Whether the whole answers stand in the card: where a fold was opened, only if they say more than its tries."""
        return self._card is not None and self.is_open and (not is_fruitless(self._card) or self._says_more)

    @property
    def _says_more(self) -> bool:
        return self._card is not None and any(says_more(answer) for answer in self._card.completions if answer.judged)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A card that is folded is opened by a click anywhere."""
        if event.button() == Qt.MouseButton.LeftButton and self._is_folded:
            self._toggle()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self._menu.popup(event.globalPos())

    def _copy(self) -> None:
        if self._card is not None:
            QGuiApplication.clipboard().setText(self.as_text(self._card))

    def as_text(self, card: Card) -> str:
        """The card as plain text for the clipboard; invisible characters are made visible."""
        head = ", ".join((self._who.words(), tr(one_line(card.specialty)), self._when.words()))
        parts = [head, visible_lines(card.question[:LONGEST_SHOWN])]
        effects = (*card.effects, *(0 for _ in card.completions))
        for number, (answer, effect) in enumerate(zip(card.completions, effects, strict=False), 1):
            arrow = "" if not effect else "  \u2191" if effect > 0 else "  \u2193"
            chip_text, answer_text = answer_chip(answer, going=self._going)[0], visible_lines(answer.text[:LONGEST_SHOWN])
            parts.append(f"{number}. {chip_text}{arrow}\n{answer_text}".rstrip())
        parts += [f"{tr('Right answer')}: {each.text}" for each in truth_of(card)]
        return "\n\n".join([*parts, "  ".join(filter(None, (self._foot.words(), self._right.words())))])

    def _press(self) -> None:
        """Open the card by its answers, or close it, if there is more to read."""
        if not self._reader.isHidden():
            self._toggle()

    def _toggle(self) -> None:
        if self._card is not None:
            self._opened ^= {self._card.key}
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._fit()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:  # widths of its parts changed
            self._fit()
        return super().event(event)

    def _fit(self) -> None:
        """Offer to show more if anything is cut. This changes heights only, so it runs once widths are known."""
        is_open, card = self.is_open, self._card
        if card is None:
            return
        self._question.set_limit(10_000 if is_open else self._theme.px(GRID_HIGH if self._question.has_grid else QUESTION_HIGH))
        self._show_answers()
        folded = self._is_folded
        self.setCursor(Qt.CursorShape.PointingHandCursor if folded else Qt.CursorShape.ArrowCursor)
        self._question.setVisible(not folded)
        self._tries.setVisible(not folded and not self._reads_whole)
        self._brief.setVisible(folded)
        for part in (self._sign, self._foot):
            part.setVisible(not folded)
        has_more_answers = folded or self._says_more or self._tries.is_cut
        self._reader.setVisible(is_open or has_more_answers or self._question.is_cut)
        more = tr("Show answers") if folded else tr("Show full answers") if has_more_answers else tr("Show question")
        words = tr("Show less") if is_open else more
        self._reader.say(words)
        self._reader.setAccessibleName(f"{words}: {one_line(card.question)}")
        if is_open:
            needed = max((tile.lines_needed(OPEN_LINES) for tile in self._tiles if not tile.isHidden()), default=LINES)
            for tile in self._tiles:
                tile.show_lines(max(LINES, needed))


def _time_text(card: Card, state: State, now: float) -> str:
    if card.mine and card.round == state.round and state.phase in ("contributing", "finishing"):
        return tr("this round")
    when = ago(card.at, now)
    words = tr("round %1") if when == tr("now") else tr("round %1, %2").replace("%2", when)
    return words.replace("%1", figure(round_number(card.round)))
