"""The card Privacy: the last ten messages that left this computer, verbatim, and what stays on it."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QPlainTextEdit

from waggle.gui.i18n.formatting import clock, date_of, later, plural, size, tr, visible, whole_day
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.responsive_row import EvenRow
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.layout import as_widget, column, row, rule
from waggle.gui.widgets.text import text
from waggle.protocol.commands import QuerySent, new_id
from waggle.protocol.events_outbox import SentMessage
from waggle.protocol.state import State
from waggle.protocol.text.privacy_text import SHARED, STAYS

KINDS = {
    "groups": later("Your model's answers"), "announcement": later("Announcement"), "greeting": later("Greeting"),
    "charter": later("The swarm's charter"), "sheet": later("Your model's answers to an exam"),
    "questions": later("The swarm's questions"),
}  # fmt: skip


class PrivacyCard(QFrame):
    """`commanded` queries the engine for the messages, which it keeps in memory only."""

    commanded = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._displayed: tuple[SentMessage, ...] | None = None
        self._line = text(theme, tr("Verbatim, newest first. Kept in memory only."), "small", "soft", wrap=True)
        self._ask = Button(theme, tr("Show them"))
        self._ask.setAccessibleName(tr("Show the last ten messages"))
        self._ask.clicked.connect(lambda: self.commanded.emit(QuerySent(id=new_id())))
        self._messages = QPlainTextEdit()
        self._messages.setReadOnly(True)
        self._messages.setFont(theme.font("mono"))
        self._messages.setAccessibleName(tr("The last ten messages that left this computer"))
        self._messages.setTabChangesFocus(True)
        self._messages.setFixedHeight(theme.px(280))
        self._messages.hide()
        facts = ((tr("Shared with the swarm"), tr(SHARED)), (tr("Stays on this computer"), tr(STAYS)))
        titled = (column(text(theme, title, "strong"), text(theme, words, "small", "soft", wrap=True), None, gap=2)
                  for title, words in facts)  # fmt: skip
        about = EvenRow(*map(as_widget, titled))
        about.set_gap(28)
        title = text(theme, tr("The last ten messages that left this computer"), "strong", wrap=True)
        head = row((column(title, self._line, gap=2), 1), self._ask)
        self.setLayout(
            column(text(theme, tr("Privacy"), "heading"), about, rule(), head, self._messages, gap=10, margins=(20, 16, 20, 18))
        )
        self.words = " ".join(
            (tr("Privacy"), self._messages.accessibleName(), *(each for pair in facts for each in pair))
        ).lower()

    def show_state(self, state: State) -> None:
        """Redraw if the engine sent other messages."""
        self._ask.setEnabled(state.phase not in ("problem", "stopped"))
        if state.sent is None or state.sent == self._displayed:
            return
        self._displayed = state.sent
        self._line.setText(plural(len(state.sent), "%n message, newest first.", "%n messages, newest first.")
                           if state.sent else tr("Nothing has left this computer since Waggle started."))  # fmt: skip
        self._messages.setVisible(bool(state.sent))
        self._messages.setPlainText("\n\n".join(message_text(message) for message in state.sent))


def message_text(message: SentMessage) -> str:
    """Time, kind, recipient and size of a message, then the message itself."""
    to = tr("to %1").replace("%1", visible(message.to)) if message.to else tr("to whoever asks")
    what = tr("Your model's answers, and yours, labelled as human") if message.yours else tr(KINDS[message.kind])
    at = f"{whole_day(date_of(message.at))}, {clock(message.at)}"
    return f"— {at} · {what} · {to} · {size(message.size)}\n{message.text}"
