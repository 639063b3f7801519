"""One turn of a chat: the person's message and two answers; in a blind test the person guesses which model gave which."""

from dataclasses import dataclass

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QWidget

from waggle.gui.i18n.formatting import plural, tr, visible
from waggle.gui.pages.playground.blind_labels import TextBlock, answer_label, not_now_text, snapshot_label
from waggle.gui.state.story.tries import plain_reply
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.layout import as_widget, column, restyle, row
from waggle.gui.widgets.text import ElidedLabel, text
from waggle.protocol.events_chat import Reply, Turn


@dataclass
class Guess:
    """A blind test: the place of the present model (0 or 1), and the place the person took for it (-1: could not tell)."""

    now: int
    chosen: int | None = None


def reply_state(reply: Reply, turn: Turn) -> str:
    """The progress of an answer, in a word or two; empty if it is complete."""
    if not turn.finished:
        return "" if reply.ended else tr("writing") if reply.text else tr("getting ready")
    if reply.ended:
        return ""
    return tr("stopped by you") if turn.stopped else tr("cut off")


def note_on(turn: Turn) -> str:
    """What a person should know about the replies; empty if nothing."""
    left_out = (
        plural(turn.left_out, "%n earlier turn was left out: there was no room for it.",
               "%n earlier turns were left out: there was no room for them.") if turn.left_out else ""
    )  # fmt: skip
    return f"{not_now_text(turn.not_now)} {left_out}".strip()


class ReplyTile(QFrame):
    """One answer and its label."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("kind", "well")
        self._who, self._state = (
            ElidedLabel(theme, "", "label", "text_soft"),
            ElidedLabel(theme, "", "caption", "text_faint", right=True),
        )
        self._words = TextBlock(theme, "reply")
        self.setLayout(
            column(row((self._who, 1), self._state, margins=(2, 0, 2, 0)), self._words, None, gap=4, margins=(12, 10, 12, 8))
        )

    def show_reply(self, who: str, reply: Reply, turn: Turn, *, mine: bool, picked: bool) -> None:
        self._who.say(who, "accent_text" if mine else "text_soft")
        restyle(self, "now", mine)
        self._state.say(tr("your guess") if picked else reply_state(reply, turn))
        empty = turn.finished and not reply.text.strip()
        self._words.say(tr("It said nothing.") if empty else plain_reply(reply.text))
        self._words.setAccessibleName(f"{who}: {visible(plain_reply(reply.text))}")

    def spoken_text(self) -> str:
        """The label and the answer, for a screen reader."""
        return self._words.accessibleName()


class ChatTurn(QWidget):
    """Shows one turn while it grows. With a `guess`, the models are not named until the person has guessed."""

    chosen = Signal()

    def __init__(self, theme: Theme, guess: Guess | None) -> None:
        super().__init__()
        self.guess, self._revealed = guess, False
        self._turn: Turn | None = None
        self._prompt = TextBlock(theme, "body")
        you = ElidedLabel(theme, tr("You"), "label")
        you.setFixedWidth(theme.px(40))
        self._tiles = (ReplyTile(theme), ReplyTile(theme))
        self._note = ElidedLabel(theme, "", "caption", "text_faint")
        self._asks = [Button(theme, words, small=True) for words in (answer_label(0), answer_label(1), tr("Can't tell"))]
        for place, ask in enumerate(self._asks):
            ask.clicked.connect(lambda _on=False, place=place: self._choose(place if place < 2 else -1))
        self._question = as_widget(row(text(theme, tr("Which one is your model now?"), "small", "soft"), *self._asks, None))
        self._same = text(theme, tr("Both answered the same."), "small", "soft")
        self._same.hide()
        self._question.hide()
        tiles = row(*((tile, 1) for tile in self._tiles), gap=12)
        self.setLayout(column(row(column(2, you, None), (self._prompt, 1)), self._note, tiles, self._question, self._same, gap=6))

    def show_turn(self, turn: Turn) -> None:
        if turn == self._turn:
            return
        self._turn = turn
        self._prompt.say(turn.words)
        self._prompt.setAccessibleName(tr("You: %1").replace("%1", visible(turn.words)))
        note = note_on(turn)
        self._note.say(note)
        self._note.setVisible(bool(note))
        self._draw()

    def take_over(self, before: "ChatTurn") -> None:
        """Take over the guess, and whether the models are named."""
        self.guess, self._revealed = before.guess, before._revealed
        self._draw()

    def spoken_text(self) -> str:
        """Both answers, for a screen reader."""
        return " ".join(tile.spoken_text() for tile in self._tiles)

    def reveal(self) -> None:
        """Name the models, even before the person has chosen."""
        self._revealed = True
        self._draw()

    def _choose(self, place: int) -> None:
        if self.guess is not None:
            self.guess.chosen = place
            self._draw()
            self.chosen.emit()

    def _draw(self) -> None:
        turn, guess = self._turn, self.guess
        if turn is None:
            return
        first, second = (plain_reply(reply.text).strip() for reply in turn.replies)
        same = turn.finished and first == second  # as they are shown
        hidden = guess is not None and guess.chosen is None and not self._revealed and not same
        for place, tile in enumerate(self._tiles):
            side = place if guess is None else place ^ guess.now  # in `replies` the present model comes first
            reply = turn.replies[side]
            if hidden:
                who = answer_label(place)
            elif side:
                who = snapshot_label(reply.rounds, turn.replies[0].rounds)
            else:
                who = current_model_label(reply.rounds) if not turn.not_now else snapshot_label(reply.rounds, -1)
            picked = guess is not None and guess.chosen == place
            tile.show_reply(who, reply, turn, mine=not hidden and side == 0, picked=picked)
        self._question.setVisible(hidden and turn.finished)
        self._same.setVisible(same)


def current_model_label(rounds: int) -> str:
    """The label of the present model, including one that is still untrained."""
    return snapshot_label(rounds, rounds) if rounds else tr("Now, untrained")
