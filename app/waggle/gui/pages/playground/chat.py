"""The chat: a person's messages, answered by the present model and an earlier one side by side, blind on request."""

import asyncio
import random

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QActionGroup, QKeyEvent, QShowEvent
from PySide6.QtWidgets import QMenu, QPlainTextEdit, QWidget

from waggle.core.errors import EngineError
from waggle.gui.coroutines import start
from waggle.gui.engine_client.engine_client import EngineClient
from waggle.gui.i18n.formatting import one_line, plural, tr
from waggle.gui.i18n.placeholders import NO_MODEL, why_unavailable
from waggle.gui.pages.playground.blind_labels import hide_names_box, snapshot_label
from waggle.gui.pages.playground.chat_turn import ChatTurn, Guess
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.responsive_row import ResponsiveRow
from waggle.gui.widgets.containers.scroll_area import ScrollArea
from waggle.gui.widgets.controls.buttons import Button, menu_button
from waggle.gui.widgets.layout import as_widget, card, column, in_the_middle, restyle, row, rule
from waggle.gui.widgets.refusals import announce_refusal, refusal_words
from waggle.gui.widgets.text import ElidedLabel, announce, text
from waggle.protocol.commands import ClearChat, OfferChat, SendMessage, StopReplies, new_id
from waggle.protocol.events import CommandDone
from waggle.protocol.events_chat import LONGEST, SENT, TURNS, Reply, Turn
from waggle.protocol.state import State

TINY = 10_000_000  # parameters of a model that knows puzzles and little else
FIRST, SHORT = 3, 60  # messages that are offered to begin with, and characters of each at most
WIDEST = 1160  # pixels of a conversation at a text size of 100%, so that two short answers stay beside each other
LINES = 2  # visible while a message is written


def model_notice(state: State) -> str:
    """What a person should know about the models before chatting; empty if nothing."""
    offered, ready = state.offered, state.ready
    if offered is None or ready is None:
        return ""
    if len(offered.moments) == 1:
        return tr("Until the first round is saved, both are the same model.")
    if not offered.taught and ready.parameters < TINY:
        return tr("It was trained only on puzzles, so it won't chat well, and it doesn't remember earlier messages.")
    if offered.taught:
        return ""
    return tr("This model was never taught to chat, and it does not remember earlier messages.")


def first_messages(state: State) -> tuple[str, ...]:
    """What to ask first: the shortest questions of the last rounds, each of another specialty, else something short."""
    questions: dict[str, str] = {}
    for question_card in sorted(state.cards, key=lambda each: len(each.question)):
        if len(question_card.question) <= SHORT and question_card.specialty not in questions:
            questions[question_card.specialty] = one_line(question_card.question)
    usual = (tr("What is 7 × 6?"), tr("Simplify the fraction 12/18."), tr("Who are you?"))
    return (*list(questions.values())[:FIRST], *usual)[:FIRST]


def guesses_summary(guesses: list[Guess]) -> str:
    """How often the person recognised the present model in blind tests; empty before the first guess."""
    right = [guess.chosen == guess.now for guess in guesses if guess.chosen in (0, 1)]
    if not right:
        return ""
    return plural(len(right), "%1 of %n guess was right.", "%1 of %n guesses were right.").replace("%1", str(sum(right)))


class MessageInput(QPlainTextEdit):
    """The message being written: Enter sends it, Shift+Enter starts a new line."""

    sent = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("kind", "message")
        self.setFont(theme.font("body"))
        self.setAccessibleName(tr("Your message"))
        self.setPlaceholderText(tr("Write a message; Enter sends it, Shift+Enter adds a line"))
        self.setTabChangesFocus(True)
        self.setFixedHeight(self.fontMetrics().lineSpacing() * LINES + 24)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.sent.emit()
        else:
            super().keyPressEvent(event)


class ChatView(QWidget):
    """One conversation. Its turns are in the State; the person's guesses are only here."""

    commanded = Signal(object)

    def __init__(self, theme: Theme, client: EngineClient) -> None:
        super().__init__()
        self._theme, self._client, self.state = theme, client, State()
        self._before = 0  # rounds of the earlier model
        self._waiting = ""  # the message that is being answered
        self._answer: asyncio.Future[CommandDone] | None = None  # that is awaited then
        self._offered_for: object = None  # the Ready whose models were queried
        self._boxes: list[ChatTurn] = []
        self._moments = menu_button(theme, tr("Compared with"), small=True)
        self._menu = QMenu(self._moments)
        self._group = QActionGroup(self._menu)
        self._recorded = False
        self.blind = hide_names_box(theme)
        self.blind.toggled.connect(self._set_blind)
        self._clear = Button(theme, tr("Clear"), small=True)
        self._clear.clicked.connect(self._forget)
        self.tools = ResponsiveRow(self._moments, self.blind, self._clear)
        self.tools.set_gap(12)
        self._about = ElidedLabel(theme, "", "small", "text_soft")
        self._tally = ElidedLabel(theme, "", "small", "text_soft")
        self._above, self._turns = rule(), column(None, gap=16)
        self._room = ScrollArea(self._turns, "surface")
        bar = self._room.verticalScrollBar()
        self._follows = True
        bar.valueChanged.connect(lambda value: self._look_on(value >= bar.maximum() - 4))
        bar.rangeChanged.connect(lambda _low, high: bar.setValue(high) if self._follows else None)
        self._empty = text(
            theme, tr("Say something, and compare your model with how it was before training."), tone="soft", wrap=True
        )
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._firsts = [Button(theme, "", small=True) for _ in range(FIRST)]
        for button in self._firsts:
            button.clicked.connect(lambda _on=False, button=button: self._begin_with(button.accessibleName()))
        firsts = row(None, ResponsiveRow(*self._firsts), None)
        self._beginning = ScrollArea(column(None, self._empty, 8, firsts), "surface")
        self.message = MessageInput(theme)
        self.message.sent.connect(self._say)
        self.message.textChanged.connect(self._draw_length)
        self.button = Button(theme, tr("Send"), "primary")
        self.button.clicked.connect(self._send_or_stop)
        self._message = ElidedLabel(theme, "", "small")
        writing = row((self.message, 1), column(self.button, None), gap=12)
        conversation = as_widget(column(
            self.tools, self._about, self._above, (self._beginning, 1), (self._room, 1), rule(), writing,
            row((self._message, 1), self._tally), gap=10,
        ))  # fmt: skip
        conversation.setMaximumWidth(theme.px(WIDEST))
        self.setLayout(column((card((in_the_middle(conversation), 1)), 1)))
        self._complain("")
        self._draw()

    def showEvent(self, event: QShowEvent) -> None:
        """Query the models again: snapshots may have changed while the view was hidden."""
        super().showEvent(event)
        self._offered_for = None
        self._ask_for_offer()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self._waiting:
            self.commanded.emit(StopReplies(id=new_id()))
        else:
            super().keyPressEvent(event)

    def show_state(self, state: State) -> None:
        before, self.state = self.state, state
        self._ask_for_offer()
        if state.offered is not None and state.offered is not before.offered:
            self._fill_moments()
        answered = bool(self._waiting) and state.talk is not before.talk and self._is_answered()
        if answered:
            self._end_waiting(lost=False)
        self._draw()
        if answered:
            announce(self, self._boxes[-1].spoken_text())

    def take_over(self, before: "ChatView") -> None:
        """Take over the message being written, the one being answered, and the guesses."""
        self.state, self._before, self._offered_for = before.state, before._before, before._offered_for
        if before._waiting and before._answer is not None:
            self._waiting = before._waiting
            self._await(before._answer)
        self._fill_moments()
        self.blind.setChecked(before.blind.isChecked())
        self.message.setPlainText(before.message.toPlainText())
        self._draw()
        for box, other in zip(self._boxes, before._boxes, strict=False):
            box.take_over(other)
        self._draw()

    def show_replay(self) -> None:
        """Mark as a replay: there is no engine to command."""
        self._recorded = True
        self._empty.setText(tr(NO_MODEL))
        self._draw()

    def _why_not(self) -> str:
        return tr(NO_MODEL) if self._recorded else why_unavailable(self.state)

    def _await(self, answer: asyncio.Future[CommandDone]) -> None:
        self._answer = answer
        start(self, self._restore_if_refused(answer))

    async def _restore_if_refused(self, answer: asyncio.Future[CommandDone]) -> None:
        """If the message that is being answered is refused, restore it and say why."""
        try:
            await asyncio.shield(answer)
        except EngineError as error:
            if self._waiting and answer is self._answer:
                self._end_waiting(lost=True)
                self._draw()
                self._complain(refusal_words(error))
                announce_refusal(error, self._message, self._client)

    def _is_answered(self) -> bool:
        return bool(self.state.talk) and self.state.talk[-1].finished

    def _end_waiting(self, *, lost: bool) -> None:
        words, self._waiting = self._waiting, ""
        if lost and words and not self.message.toPlainText():
            self.message.setPlainText(words)

    def _ask_for_offer(self) -> None:
        ready = self.state.ready
        if self.isVisible() and ready is not None and ready is not self._offered_for and not self._why_not():
            self._offered_for = ready
            self.commanded.emit(OfferChat(id=new_id()))

    def _fill_moments(self) -> None:
        """List the earlier models that can be compared with."""
        offered = self.state.offered
        moments = offered.moments if offered else ()
        choices = moments[:-1] or moments
        if self._before not in choices:
            self._before = 0
        self._menu.clear()
        for rounds in choices:
            action = QAction(snapshot_label(rounds, -1), self._menu, checkable=True, checked=rounds == self._before)
            action.triggered.connect(lambda _on=False, rounds=rounds: self._compare_with(rounds))
            self._group.addAction(action)
            self._menu.addAction(action)
        self._moments.setMenu(self._menu)

    def _compare_with(self, rounds: int) -> None:
        self._before = rounds
        self._draw()

    def _finished_turns(self) -> tuple[Turn, ...]:
        return tuple(turn for turn in self.state.talk if turn.finished)

    def _send_or_stop(self) -> None:
        if self._waiting:
            self.commanded.emit(StopReplies(id=new_id()))
        else:
            self._say()

    def _say(self) -> None:
        words, earlier = self.message.toPlainText().strip(), self._finished_turns()
        if self._waiting or not words or not self.button.isEnabled():
            return
        self._waiting, self._follows = words, True
        self.message.clear()
        self._complain("")
        number = len(earlier)
        command = SendMessage(id=new_id(), words=words, number=number, before=self._before, earlier=earlier[-SENT:])
        self._await(self._client.command(command))
        self._draw()

    def _begin_with(self, words: str) -> None:
        self.message.setPlainText(words)
        self._say()

    def _forget(self) -> None:
        self._waiting = ""
        self._complain("")
        self.message.setFocus()  # the button is disabled in a moment
        self.commanded.emit(ClearChat(id=new_id()))

    def _set_blind(self, blind: bool) -> None:
        """Name the models of all earlier turns; the choice applies to new turns."""
        for box in self._boxes:
            box.reveal()
        self._draw()

    def _look_on(self, at_the_end: bool) -> None:
        self._follows = at_the_end

    def _draw(self) -> None:
        state, why_not = self.state, self._why_not()
        reads_earlier = state.offered is None or state.offered.taught  # the turns before: they stay those of one earlier model
        fixed = tr("Clear this conversation to compare with another moment.") if state.talk and reads_earlier else ""
        status_line = model_notice(state) or fixed
        self._about.say(status_line)
        self._about.setVisible(bool(status_line))
        self._draw_turns()
        self._draw_button(why_not)
        chosen = snapshot_label(self._before, -1)
        compared = tr("Compared with: %1").replace("%1", chosen)
        self._moments.say(compared, "down")
        self._moments.setAccessibleName(compared)
        self._moments.setEnabled(not why_not and not fixed)
        self._moments.setToolTip(why_not or fixed)
        self._clear.setEnabled(bool(state.talk) and not why_not)
        self._tally.say(guesses_summary([box.guess for box in self._boxes if box.guess is not None]))
        if self._is_full():
            self._complain(tr("This conversation is as long as one can be. Clear it to begin another."))
        self._draw_length()

    def _is_full(self) -> bool:
        return len(self._finished_turns()) >= TURNS

    def _draw_button(self, why_not: str) -> None:
        kind = "plain" if self._waiting else "primary"
        restyle(self.button, "kind", kind)
        self.button.change_to(kind, tr("Stop") if self._waiting else tr("Send"), "cross" if self._waiting else "")
        self.button.setToolTip(why_not)

    def _draw_turns(self) -> None:
        talk = self._visible_turns()
        while len(self._boxes) > len(talk):
            box = self._boxes.pop()
            box.hide()
            box.deleteLater()
        while len(self._boxes) < len(talk):
            guess = Guess(now=random.randrange(2)) if self.blind.isChecked() else None
            box = ChatTurn(self._theme, guess)
            box.chosen.connect(self._draw)
            self._turns.insertWidget(self._turns.count() - 1, box)
            box.show()
            self._boxes.append(box)
        for box, turn in zip(self._boxes, talk, strict=True):
            box.show_turn(turn)
        self._beginning.setVisible(not talk and not self._waiting)
        if not talk:
            for button, words in zip(self._firsts, first_messages(self.state), strict=True):
                button.say(words)
                button.setEnabled(not self._why_not())
        for part in (self._above, self._room):
            part.setVisible(bool(talk) or bool(self._waiting))

    def _visible_turns(self) -> tuple[Turn, ...]:
        """The turns to show, including the message that was just sent and has no answer yet."""
        finished, offered = self._finished_turns(), self.state.offered
        if not self._waiting:
            return finished
        if len(self.state.talk) > len(finished):
            return self.state.talk
        newest = max(offered.moments[-1], self.state.round) if offered else 0
        return (*finished, Turn(words=self._waiting, replies=(Reply(rounds=newest), Reply(rounds=self._before))))

    def _too_many(self) -> int:
        """How many characters the message has beyond LONGEST, as the engine counts them."""
        return len(self.message.toPlainText().strip()) - LONGEST

    def _draw_length(self) -> None:
        many = self._too_many()
        too_long = many > 0
        if too_long:
            complaint = plural(many, "This message is %n character too long.", "This message is %n characters too long.")
            self._complain(complaint)
        elif self._message.property("length"):
            self._complain("")
        self._message.setProperty("length", too_long)
        is_empty = not self.message.toPlainText().strip()
        may_say = bool(self._waiting) or not (self._is_full() or too_long or is_empty)
        self.button.setEnabled(may_say and not self._why_not())

    def _complain(self, words: str) -> None:
        private = tr("Your messages are not saved or shared.")
        self._message.say(words or private, "bad" if words else "text_faint")
