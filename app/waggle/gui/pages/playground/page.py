"""The page Try it: a question that is judged, a chat with the model, and a race that shows whether sharing helps."""

from PySide6.QtWidgets import QStackedWidget

from waggle.gui.i18n.formatting import one_line, tr
from waggle.gui.pages.context import PageContext
from waggle.gui.pages.page import Page
from waggle.gui.pages.playground.chat import ChatView
from waggle.gui.pages.playground.question import QuestionView
from waggle.gui.pages.playground.race import RaceView
from waggle.gui.widgets.containers.page_header import header_margins, title_row
from waggle.gui.widgets.containers.scroll_area import ScrollArea
from waggle.gui.widgets.controls.buttons import SegmentedControl
from waggle.gui.widgets.layout import as_widget, column
from waggle.gui.widgets.text import ElidedLabel, announce
from waggle.protocol.state import State

PARTS = ("question", "chat", "race")  # the race needs no engine
QUESTION, CHAT, RACE = range(len(PARTS))


class PlaygroundPage(Page):
    """Shows one of its three views. A race goes on while others are shown, and says how it ended."""

    def __init__(self, context: PageContext) -> None:
        super().__init__(context)
        theme = context.theme
        self._state = State()
        self.ask, self.chat, self.race = QuestionView(theme, context.client), ChatView(theme, context.client), RaceView(theme)
        self.race.ended.connect(self._tell_end)
        for view in (self.ask, self.chat):
            view.commanded.connect(self.commanded)
        self.which = SegmentedControl(theme, (tr("A question"), tr("Chat"), tr("Does sharing help?")), tr("How to try it"))
        self.which.chosen.connect(self._choose)
        self._line = ElidedLabel(theme, role="small", tone="text_soft")
        self._views = QStackedWidget()
        self._scrolled, self._arena = ScrollArea(column(self.ask)), ScrollArea(column((self.race, 1)))
        self._talk = column(self.chat)
        for part in (self._scrolled, as_widget(self._talk), self._arena):
            self._views.addWidget(part)
        self._views.setMinimumHeight(1)  # each view scrolls, so that the header's buttons keep their size
        self._head = column(title_row(theme, tr("Try it"), self.which), self._line, gap=0)
        self.setLayout(column(self._head, (self._views, 1), gap=0))
        self._turn_to(QUESTION)
        self.set_compact(False)

    def arrange(self, edge: int, gap: int) -> None:
        below = 20 if self.compact else 24
        self._head.setContentsMargins(*header_margins(edge, compact=self.compact, below=gap))
        self._scrolled.set_edges(edge, below)
        self._arena.set_edges(edge, below)
        self._talk.setContentsMargins(edge, 0, edge, below)
        self.race.arrange(gap)

    def show_state(self, state: State, now: float) -> None:
        self._state = state
        self.ask.show_state(state)
        self.chat.show_state(state)
        self._line.say(self._headline())

    def show_part(self, part: str) -> None:
        """Show one of PARTS."""
        index = PARTS.index(part)
        self.which.mark(index)
        self._choose(index)

    def take_over(self, before: Page) -> None:
        """Take over which view is shown, and the state of all; a race goes on."""
        assert isinstance(before, PlaygroundPage)
        self._state = before._state
        self.ask.take_over(before.ask)
        self.chat.take_over(before.chat)
        self.race.take_over(before.race)
        self.which.mark(before.which.index)
        self._turn_to(before.which.index)

    def show_replay(self, *, over: bool) -> None:
        """There is no engine to command."""
        self.ask.show_replay()
        self.chat.show_replay()

    def _choose(self, index: int) -> None:
        self._turn_to(index)
        if index < RACE:
            (self.ask, self.chat)[index].show_state(self._state)
        if index == CHAT:
            self.chat.message.setFocus()

    def _turn_to(self, index: int) -> None:
        focused = self.window().focusWidget()
        if focused is not None and self._views.isAncestorOf(focused):
            self.setFocus()  # else Qt focuses the rail, and Space would leave the page
        self._views.setCurrentIndex(index)
        self._line.say(self._headline())

    def _headline(self) -> str:
        if self._views.currentIndex() == RACE:
            return tr("Two practice swarms on this computer, one of which shares")
        ready = self._state.ready
        return (
            tr("Your model is %1").replace("%1", one_line(ready.model)) if ready else tr("No model is loaded.").removesuffix(".")
        )

    def _tell_end(self, words: str) -> None:
        """A race ended: announce it where it is seen, and post a notice where it is not."""
        if self.race.isVisible() and not self.window().isMinimized():
            announce(self.race, words)
        else:
            self.notice_posted.emit(words, "check" if self.race.race.phase == "ended" else "warn")
