"""The playground's two views: a question that is judged, and a chat. Both compare the present model with earlier ones."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QStackedWidget, QWidget

from waggle.gui.i18n.formatting import tr
from waggle.gui.pages.swarms.playground.chat import ChatView
from waggle.gui.pages.swarms.playground.question import QuestionView
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import SegmentedControl
from waggle.gui.widgets.layout import column, row
from waggle.gui.widgets.scroll_area import ScrollArea
from waggle.protocol.state import State


class PlaygroundView(QWidget):
    """Shows one of the two views."""

    commanded = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.ask, self.chat = QuestionView(theme), ChatView(theme)
        self.which = SegmentedControl(theme, (tr("A question"), tr("Chat")), tr("How to try it"))
        self.which.chosen.connect(self._choose)
        self._views = QStackedWidget()
        self._scrolled = ScrollArea(column(self.ask))
        self._views.addWidget(self._scrolled)
        self._views.addWidget(self.chat)
        for view in (self.ask, self.chat):
            view.commanded.connect(self.commanded)
        self._head = row(self.which, None, self.chat.tools)
        self.chat.tools.hide()
        self.setLayout(column(self._head, (self._views, 1), gap=12))

    def set_edges(self, edge: int, below: int) -> None:
        """Room at the sides and below, in pixels."""
        self._head.setContentsMargins(edge, 0, edge, 0)
        self._scrolled.set_edges(edge, below)
        self.chat.setContentsMargins(edge, 0, edge, below)

    def show_state(self, state: State) -> None:
        self.ask.show_state(state)
        self.chat.show_state(state)

    def take_over(self, before: "PlaygroundView") -> None:
        """Take over which view is shown, and the state of both."""
        self.ask.take_over(before.ask)
        self.chat.take_over(before.chat)
        self.which.mark(before.which.index)
        self._turn_to(before.which.index)

    def show_replay(self) -> None:
        """Mark as a replay: there is no engine to command."""
        self.ask.show_replay()
        self.chat.show_replay()

    def handle_refusal(self, words: str, command: str) -> bool:
        """The command with this id, or (empty) every command, was refused; returns whether a visible view shows the reason."""
        return any([self.ask.handle_refusal(words, command), self.chat.handle_refusal(words, command)])

    def _choose(self, index: int) -> None:
        self._turn_to(index)
        (self.ask, self.chat)[index].show_state(self.chat.state)
        if index == 1:
            self.chat.message.setFocus()

    def _turn_to(self, index: int) -> None:
        self._views.setCurrentIndex(index)
        self.chat.tools.setVisible(index == 1)
