"""The page Swarms: the swarms you know, joining, creating and inviting."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QStackedWidget

from waggle.gui.i18n.formatting import one_line, tr
from waggle.gui.i18n.placeholders import why_unavailable
from waggle.gui.pages.context import PageContext
from waggle.gui.pages.page import Page
from waggle.gui.pages.swarms.create_form import CreateSwarmForm
from waggle.gui.pages.swarms.invite_view import InviteView
from waggle.gui.pages.swarms.join_view import JoinView
from waggle.gui.pages.swarms.swarm_list import SwarmList, offers_own_swarm
from waggle.gui.pages.swarms.swarm_preview import created_words
from waggle.gui.widgets.containers.page_header import header_margins, page_header
from waggle.gui.widgets.containers.scroll_area import ScrollArea
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.layout import column
from waggle.gui.widgets.text import ElidedLabel
from waggle.protocol.commands import ChangeSettings, ForgetSwarm, ListSwarms, new_id
from waggle.protocol.state import State

LIST, JOIN, CREATE, INVITE = range(4)


def why_no_switch(state: State) -> str:
    """Why the node cannot go to another swarm now; empty if it can."""
    return _why_unavailable(state) or (tr(state.swarms.fixed) if state.swarms else "")


def _why_unavailable(state: State) -> str:
    """Why the engine cannot be asked about swarms now. While it waits for the choice of one, it can."""
    return "" if state.phase == "preparing" and state.undecided is not None else why_unavailable(state)


class SwarmsPage(Page):
    """The list of swarms and the views that open from it. A view that is not in front waits for no answer."""

    def __init__(self, context: PageContext) -> None:
        super().__init__(context)
        theme = context.theme
        self._state = State()
        self._gap = 0  # between cards
        self._asked_of: object = None  # the Ready whose swarms were queried
        self._charter_to_preview = ""  # the charter of a swarm to preview once the swarms are listed
        self._line = ElidedLabel(theme, role="small", tone="text_soft")
        self._join = Button(theme, tr("Join with an invite"), icon="gather")
        self._join.clicked.connect(lambda: self.show_join())
        self._new = Button(theme, tr("Create a swarm"), icon="swarms")
        self._new.clicked.connect(lambda: self.show_form())
        self._ask_others = Button(theme, tr("Invite someone"), "primary", "invite")
        self._ask_others.clicked.connect(lambda: self.show_part("invite"))
        self._alone = Button(theme, tr("Train alone for now"), icon="you")
        self._alone.clicked.connect(lambda: self.commanded.emit(ChangeSettings(id=new_id(), values={"swarm.solo": True})))
        self.join_view = JoinView(theme, context.client)
        self.join_view.opened.connect(lambda: self._turn_to(JOIN))
        self.join_view.closed.connect(self.show_list)
        self._form = CreateSwarmForm(theme, context.client, context.engine.name)
        self._invite_view = InviteView(theme, context.client, context.engine.name)
        self._form.created.connect(lambda swarm: self.join_view.preview(swarm, created_words))
        self._form.declined.connect(self._give_up)
        self._invite_view.closed.connect(self.show_list)
        self._invite_view.notice_posted.connect(self.notice_posted)
        self._views = QStackedWidget()
        self._list = SwarmList(theme)
        self._list.join_wanted.connect(self.show_join)
        self._list.form_wanted.connect(self.show_form)
        self._list.chosen.connect(self.join_view.preview_known)
        self._list.forgotten.connect(lambda charter: self.commanded.emit(ForgetSwarm(id=new_id(), charter=charter)))
        views = (
            ScrollArea(column(self._list)), self.join_view, ScrollArea(column((self._form, 1000), None)),
            ScrollArea(column(self._invite_view, None)),
        )  # fmt: skip
        for view in views:
            self._views.addWidget(view)
        self._head = page_header(theme, tr("Swarms"), self._line, self._join, self._new, self._alone, self._ask_others)
        self._views.setMinimumHeight(1)  # each view scrolls, so that the header's buttons keep their size
        self.setLayout(column(self._head, (self._views, 1), gap=0))
        self.set_compact(False)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self._views.currentIndex() != LIST:
            self.show_list()
        else:
            super().keyPressEvent(event)

    def arrange(self, edge: int, gap: int) -> None:
        below = 20 if self.compact else 24
        self._head.setContentsMargins(*header_margins(edge, compact=self.compact, below=gap))
        for place in range(self._views.count()):
            view = self._views.widget(place)
            assert isinstance(view, ScrollArea | JoinView)
            view.set_edges(edge, below)
        self._gap = gap
        self._ask_others.say(tr("Invite") if self.compact else tr("Invite someone"), "invite")
        self._join.say(tr("Join") if self.compact else tr("Join with an invite"), "gather")
        self._new.say(tr("Create") if self.compact else tr("Create a swarm"), "swarms")

    def show_state(self, state: State, now: float) -> None:
        self._state = state
        self.join_view.show_state(state)
        answers = state.undecided or state.ready
        if answers is not None and not _why_unavailable(state) and self._asked_of is not answers:
            self._asked_of = answers
            self.commanded.emit(ListSwarms(id=new_id()))
        self._invite_view.show_state(state)
        self._form.show_state(state)
        why_not = why_no_switch(state)
        for button, why in ((self._new, why_not), (self._ask_others, why_unavailable(state))):
            button.setEnabled(not why)
            button.setToolTip(why)
        self._show_actions()
        self._list.show_state(state, why_not, self._gap)
        if self._charter_to_preview and state.swarms is not None:
            charter, self._charter_to_preview = self._charter_to_preview, ""
            self.join_view.preview_known(charter)
        self._line.say(self._headline(why_not).removesuffix("."))

    def show_join(self, link: str = "") -> None:
        """Ask for a link, or preview the swarm of this one."""
        self.show_list()
        self.join_view.show_link(link)

    def show_form(self, paths: Sequence[str] = (), words: str = "") -> None:
        """Show the form that creates a swarm as it was left, with these files; `words`: what to say about other files."""
        self._turn_to(CREATE)
        self._form.begin()
        if paths or words:
            self._form.add_files(paths, words)

    def _turn_to(self, view: int) -> None:
        self._charter_to_preview = ""
        self.join_view.stop_waiting()
        self._form.stop_waiting()
        self._invite_view.stop_waiting()
        focused = self.window().focusWidget()
        if focused is not None and (focused in (self._new, self._ask_others) or self._views.isAncestorOf(focused)):
            self.setFocus()  # else Qt focuses the rail, and Space would leave the page
        self._views.setCurrentIndex(view)
        self._show_actions()

    def _show_actions(self) -> None:
        listed, alone, must_choose = (
            self._views.currentIndex() == LIST,
            self._state.reach == "solo",
            self._state.undecided is not None,
        )
        self._ask_others.setVisible(listed and not alone and not must_choose)
        self._alone.setVisible(listed and must_choose)
        state = self._state
        comes = state.phase == "preparing" and state.swarms is None and not state.waits_for_choice  # the list of swarms
        for button in (self._new, self._join):
            button.setVisible(listed and not comes and not offers_own_swarm(state))

    def show_list(self) -> None:
        self._turn_to(LIST)
        self.show_state(self._state, 0.0)

    def take_over(self, before: Page) -> None:
        """Take over the view, the text and the awaited answer."""
        assert isinstance(before, SwarmsPage)
        self._state, self._asked_of = before._state, before._asked_of
        view = before._views.currentIndex()
        self._turn_to(view)
        self._form.take_over(before._form)
        self.join_view.take_over(before.join_view)
        self._invite_view.take_over(before._invite_view)

    def show_part(self, part: str) -> None:
        """Show the "list", the "invite", or the preview of the swarm with this charter hash."""
        if part == "invite":
            self._turn_to(INVITE)
            self._invite_view.open()
        else:
            self.show_list()
            self._charter_to_preview = "" if part == "list" else part
        self.show_state(self._state, 0.0)

    def _headline(self, why_not: str) -> str:
        known_swarms = self._state.swarms
        if self._state.undecided is not None and known_swarms is not None and not why_not:
            return tr("Waggle cannot tell which of your swarms you trained in: choose one.")
        if self._state.phase == "preparing" and self._state.swarms is not None:
            return tr("Waggle is going there; your model comes along.")
        if self._state.phase == "preparing" and known_swarms is None and not self._state.waits_for_choice:
            return tr("Waggle is starting; your swarms appear in a few seconds.")
        if why_not or known_swarms is None:
            return why_not or tr("Loading your swarms.")
        active = next((one_line(swarm.name) for swarm in known_swarms.swarms if swarm.active), tr("no swarm"))
        return tr("You are in %1").replace("%1", active)

    def _give_up(self) -> None:
        self._form.reset()
        self.show_list()
