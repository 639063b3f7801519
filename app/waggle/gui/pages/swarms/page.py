"""Swarms: where I am and where else I could be; joining by an invite, creating one, inviting others. Nothing joins by itself."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QStackedWidget

from waggle.core.paths import for_us
from waggle.gui.i18n.formatting import later, one_line, plural, tr, tr_sentence, visible
from waggle.gui.i18n.placeholders import why_unavailable
from waggle.gui.pages.context import PageContext
from waggle.gui.pages.page import Page
from waggle.gui.pages.swarms.create_form import SwarmForm
from waggle.gui.pages.swarms.models import ModelsView
from waggle.gui.pages.swarms.playground.view import TryView
from waggle.gui.pages.swarms.race import RaceView
from waggle.gui.pages.swarms.swarm_cards import Invitation, Sheet, as_answered, as_created, as_remembered, link_field
from waggle.gui.pages.swarms.swarm_list import SwarmList
from waggle.gui.state.invite_link import first_link, first_link_in_file
from waggle.gui.widgets.controls.buttons import Button, SegmentedControl
from waggle.gui.widgets.draft_text import copy_drafts
from waggle.gui.widgets.file_dialogs import file_dialog
from waggle.gui.widgets.layout import as_widget, card, column, empty, row
from waggle.gui.widgets.page_header import header_margins, title_row
from waggle.gui.widgets.scroll_anchor import is_in_view
from waggle.gui.widgets.scroll_area import ScrollArea
from waggle.gui.widgets.text import ElidedLabel, say_in, text
from waggle.protocol.commands import ChooseSwarm, CreateSwarm, ForgetSwarm, ListSwarms, ReadInvite, WriteInvite, new_id
from waggle.protocol.events_swarms import SwarmShown
from waggle.protocol.state import State

LIST, JOIN, SHEET, CREATE, INVITE, MODELS, TRY, RACE = range(8)
ASKING = later("Asking the computers that the link names; a few seconds.")


def why_stay(state: State) -> str:
    """Why no swarm can be gone to now; empty where one can."""
    return why_unavailable(state) or (tr_sentence(state.swarms.fixed) if state.swarms else "")


class SwarmsPage(Page):
    """A list, and what opens from it. One thing is asked of the engine at a time; what it refuses is said where it was asked."""

    def __init__(self, context: PageContext) -> None:
        super().__init__(context)
        theme = context.theme
        self._state = State()
        self._gap = 0  # between cards
        self._asked_of: object = None  # the Ready whose swarms were asked for
        self._unheard = False  # a link came before there was an engine to ask
        self._written_for: object = None  # how this computer could be reached when the invite was asked for
        self._sheet: tuple[SwarmShown, Callable[[], str]] | None = None  # the one that was shown last, and who is there
        self._waiting, self._command = "", ""  # for which answer: "look", "create", "invite", "go"; the id of the command
        self._line = ElidedLabel(theme, role="small", tone="text_soft")
        self._join = Button(theme, tr("Join by a link"), icon="gather")
        self._join.clicked.connect(lambda: self.show_join())
        self._new = Button(theme, tr("Create a swarm"), icon="swarms")
        self._new.clicked.connect(self._show_form)
        self._ask_others = Button(theme, tr("Invite someone"), "primary", "invite")
        self._ask_others.clicked.connect(self.show_invitation)
        self._form, self._invitation = SwarmForm(theme), Invitation(theme)
        self._form.submitted.connect(self._create)
        self._form.declined.connect(self._give_up)
        self._invitation.done.connect(self.show_list)
        self._invitation.save_wanted.connect(self._save_wanted)
        self._models = ModelsView(theme, here=context.engine.home is not None)
        self._models.commanded.connect(self.commanded)
        self._names = (tr("Swarms"), tr("Models"), tr("Try it"), tr("Race"))
        self._which = SegmentedControl(theme, self._names, tr("What is shown"))
        self._which.chosen.connect(lambda index: (self.show_list, self.show_models, self.show_trying, self.show_race)[index]())
        self.trying = TryView(theme)
        self.trying.commanded.connect(self.commanded)
        self.race = RaceView(theme)
        self._views = QStackedWidget()
        self._list, self._sheets = SwarmList(theme), column()
        self._list.chosen.connect(self._preview)
        self._list.forgotten.connect(lambda charter: self.commanded.emit(ForgetSwarm(id=new_id(), charter=charter)))
        views = (ScrollArea(column(self._list)), self._join_view(), ScrollArea(self._sheets), ScrollArea(column((self._form, 1))),
                 ScrollArea(column(self._invitation, None)), ScrollArea(column(self._models)), self.trying,
                 ScrollArea(column((self.race, 1))))  # fmt: skip
        for view in views:
            self._views.addWidget(view)
        self._top = title_row(theme, self._names[0], self._which, self._join, self._new, self._ask_others)
        self._head = column(self._top, self._line, gap=0)
        self._views.setMinimumHeight(1)  # each of them scrolls: the head's buttons are not to give way
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
            assert isinstance(view, ScrollArea | TryView)
            view.set_edges(edge, below)
        self._gap = gap
        self.trying.chat.set_compact(self.compact)
        self._ask_others.say(tr("Invite") if self.compact else tr("Invite someone"), "invite")
        self._join.say(tr("Join") if self.compact else tr("Join by a link"), "gather")
        self._new.say(tr("Create") if self.compact else tr("Create a swarm"), "swarms")

    def show_state(self, state: State, now: float) -> None:
        before, self._state = self._state, state
        if self._unheard and state.seq != before.seq:
            self._unheard = False
            self._look_at()
        if state.ready is not None and not why_unavailable(state) and self._asked_of is not state.ready:
            self._asked_of = state.ready
            self.commanded.emit(ListSwarms(id=new_id()))
        if self._waiting == "look" and state.looked is not None and state.looked is not before.looked:
            self._show_sheet(state.looked.swarm, partial(as_answered, state.looked))
        if self._waiting == "create" and state.created is not None and state.created is not before.created:
            self._form.reset()
            self._show_sheet(state.created.swarm, as_created)
        if self._waiting == "invite" and state.invite is not before.invite:
            self._waiting = ""
        if self._views.currentIndex() == INVITE and not why_unavailable(state):
            self._ask_for_invite()
        if state.swarms is not None:
            self._form.show_offers(state.swarms.offers)
        why_not = why_stay(state)
        for button, why in ((self._new, why_not), (self._ask_others, why_unavailable(state))):
            button.setEnabled(not why)
            button.setToolTip(why)
        self._show_actions()
        self._models.show_state(state)
        self.trying.show_state(state)
        self._list.show_state(state, why_not, self._gap)
        self._draw_invitation()
        self._line.say(self._headline(why_not))

    def show_join(self, link: str = "") -> None:
        """Ask for a link, or look at this one."""
        self.show_list()
        self._turn_to(JOIN)
        self._say("")
        self._link.setText(one_line(link))
        self._link.setFocus()
        if link:
            self._look_at()

    def _turn_to(self, view: int) -> None:
        """What was waited for where one was is waited for no more: its answer would take the place of this view."""
        self._waiting, self._unheard = "", False
        focused = self.window().focusWidget()
        if focused is not None and (focused in (self._new, self._ask_others) or self._views.isAncestorOf(focused)):
            self.setFocus()  # else Qt gives it to the rail, and a space would leave the page
        self._views.setCurrentIndex(view)
        self._top.rename(self._names[max(0, view - MODELS + 1)])
        self._show_actions()

    def _show_actions(self) -> None:
        view, alone = self._views.currentIndex(), self._state.reach == "solo"
        self._top.keep_place(self._names, self._join, self._new, *(() if alone else (self._ask_others,)))
        self._ask_others.setVisible(view == LIST and not alone)
        self._join.setVisible(view < MODELS)
        self._new.setVisible(view < MODELS and view != CREATE)

    def show_list(self) -> None:
        self._turn_to(LIST)
        if self._which.index:
            self._which.choose(0)
        self.show_state(self._state, 0.0)

    def show_trying(self) -> None:
        self._turn_to(TRY)
        self._which.mark(TRY - MODELS + 1)
        self.show_state(self._state, 0.0)

    def show_race(self) -> None:
        """The idea in two minutes; it needs no engine."""
        self._turn_to(RACE)
        self._which.mark(RACE - MODELS + 1)
        self.show_state(self._state, 0.0)

    def go_on(self, before: Page) -> None:
        """What is seen, what was typed, and the answer that is waited for."""
        assert isinstance(before, SwarmsPage)
        self._state, self._asked_of, self._written_for = before._state, before._asked_of, before._written_for
        self._form.go_on(before._form)
        self.trying.go_on(before.trying)
        self.race.go_on(before.race)
        copy_drafts(self._models, before._models)
        self._link.setText(before._link.text())
        self._say(tr(ASKING) if before._waiting == "look" else before._message.text(), str(before._message.property("tone")))
        view = before._views.currentIndex()
        if view == SHEET and before._sheet is not None:
            self._made_sheet(*before._sheet)
        self._turn_to(view)
        self._which.mark(max(0, view - MODELS + 1))
        self._waiting, self._command, self._unheard = before._waiting, before._command, before._unheard

    def show_part(self, part: str) -> None:
        {"invite": self.show_invitation, "race": self.show_race, "trying": self.show_trying}[part]()

    def show_replay(self, *, over: bool) -> None:
        self._models.show_replay()
        self.trying.show_replay()

    def show_models(self) -> None:
        self._turn_to(MODELS)
        self.show_state(self._state, 0.0)

    def postpone(self, command: str) -> bool:
        """Only a question about a link is sent again."""
        if self._waiting != "look" or command != self._command:
            return False
        self._unheard, self._waiting = True, ""
        self._say(tr("The engine is not there yet; it is asked about the link once it is."), "soft")
        return True

    def refused(self, words: str, command: str) -> bool:
        """The engine did not do this, or, without an id, nothing that was asked; whether that is said here, where it is seen."""
        in_view = [self._models.refused(words, command), self.trying.refused(words, command)]
        waiting = ""
        if command in ("", self._command):
            waiting, self._waiting = self._waiting, ""
        if waiting == "create":
            in_view.append(self._form.refused(words))
        elif waiting == "look":
            self._say(words)
            in_view.append(is_in_view(self._message))
        elif waiting == "invite":
            self.show_list()
        return any(in_view)

    def _headline(self, why_not: str) -> str:
        known_swarms = self._state.swarms
        if self._views.currentIndex() == RACE:
            return tr("Two practice swarms on this computer, one of which shares")
        if self._views.currentIndex() >= MODELS:
            model = self._state.ready
            return tr("Your model is %1").replace("%1", one_line(model.model)) if model else tr("No model is loaded.")
        if self._state.phase == "preparing" and self._state.swarms is not None:
            return tr("The engine is going there; your model comes along.")
        if why_not or known_swarms is None:
            return why_not or tr("Asking which swarms are known.")
        active = next((one_line(swarm.name) for swarm in known_swarms.swarms if swarm.active), tr("no swarm"))
        known = plural(len(known_swarms.swarms), "%n swarm is remembered", "%n swarms are remembered")
        return tr("You take part in %1; ").replace("%1", active) + known

    def _preview(self, charter: str) -> None:
        """Also a known swarm is shown before it is gone to."""
        known = self._state.swarms.swarms if self._state.swarms else ()
        for swarm in known:
            if swarm.charter == charter:
                self._show_sheet(swarm, partial(as_remembered, swarm))

    def _show_sheet(self, swarm: SwarmShown, about: Callable[[], str]) -> None:
        sheet = self._made_sheet(swarm, about)
        self._turn_to(SHEET)
        self._which.mark(0)
        sheet.no.setFocus()  # a key that was pressed for what came before joins nothing

    def _made_sheet(self, swarm: SwarmShown, about: Callable[[], str]) -> Sheet:
        self._sheet = swarm, about
        empty(self._sheets)
        leaving = one_line(self._state.ready.swarm) if self._state.ready else tr("this swarm")
        sheet = Sheet(
            self.theme,
            swarm,
            about=about(),
            leaving=leaving,
            round_=self._state.round,
            why_not=tr_sentence(self._fixed()),
        )
        sheet.accepted.connect(self._go)
        sheet.declined.connect(self.show_list)
        self._sheets.addWidget(sheet)
        self._sheets.addStretch(1)
        return sheet

    def _fixed(self) -> str:
        return self._state.swarms.fixed if self._state.swarms else ""

    def _go(self, charter: str) -> None:
        self._waiting, self._command = "go", new_id()
        self.commanded.emit(ChooseSwarm(id=self._command, charter=charter))
        if self._waiting:  # else there was nobody to ask, and the sheet stays
            self.show_list()

    def _create(self, command: CreateSwarm) -> None:
        self._waiting, self._command = "create", command.id
        self.commanded.emit(command)

    def _show_form(self) -> None:
        """As it was left: a tab, a key or another button is no reason to lose what was typed."""
        self._turn_to(CREATE)
        self._form.begin()

    def _give_up(self) -> None:
        self._form.reset()
        self.show_list()

    def show_invitation(self) -> None:
        self._turn_to(INVITE)
        self._which.mark(0)
        self._written_for = None
        self._ask_for_invite()
        self.show_state(self._state, 0.0)

    def _ask_for_invite(self) -> None:
        """Anew once others can reach this computer in another way: what was written before may not lead here."""
        state = self._state
        reached = state.ready, state.address, state.way
        if reached != self._written_for:
            self._written_for = reached
            self._waiting, self._command = "invite", new_id()
            self.commanded.emit(WriteInvite(id=self._command))

    def _draw_invitation(self) -> None:
        if self._views.currentIndex() != INVITE:
            return
        ready, invite = self._state.ready, self._state.invite
        mine = invite if invite is not None and ready is not None and invite.charter == ready.charter else None
        private = any(swarm.active and swarm.private for swarm in self._state.swarms.swarms) if self._state.swarms else False
        self._invitation.show_invite(mine, one_line(ready.swarm) if ready else "", private=private)

    def _join_view(self) -> ScrollArea:
        theme = self.theme
        self._link = link_field(theme, tr("An invite link"))
        self._link.setPlaceholderText(tr("Paste an invite link: waggle://join?…"))
        self._link.returnPressed.connect(self._look_at)
        self._look_button = Button(theme, tr("Look at it"), "primary")
        self._look_button.clicked.connect(self._look_at)
        file = Button(theme, tr("Open a file"))
        file.clicked.connect(self._file_wanted)
        back = Button(theme, tr("Cancel"))
        back.clicked.connect(self.show_list)
        self._message = text(theme, "", "small", "bad", wrap=True)
        about = text(
            theme, tr("You see what the swarm is and what would be shared; nothing is joined until you say so."), wrap=True
        )
        join_card = card(
            text(theme, tr("Join by an invite"), "title"), about, as_widget(row((self._link, 1), self._look_button)),
            self._message, as_widget(row(file, None, back)), gap=12, pad=24,
        )  # fmt: skip
        return ScrollArea(column(join_card, None))

    def _look_at(self) -> None:
        link = self._link.text().strip()
        if not link:
            self._say(tr("Paste the link first."))
            return
        self._waiting, self._command = "look", new_id()
        self._say(tr(ASKING), "soft")
        self.commanded.emit(ReadInvite(id=self._command, link=(first_link(link) or link)[:8000]))

    def _say(self, words: str, tone: str = "bad") -> None:
        say_in(self._message, visible(words), tone)

    def _file_wanted(self) -> None:
        file_dialog(self, tr("Open an invite"), lambda path: self.open_file(Path(path))).open()

    def open_file(self, path: Path) -> None:
        """Look at the invite that a file holds; says so where it holds none."""
        try:
            link = first_link_in_file(path)
        except OSError as error:  # a file that is gone or not ours to read: nothing of ours is lost
            self.show_join()
            self._say(tr("The file cannot be read: %1.").replace("%1", error.strerror or ""))
            return
        self.show_join(link)
        if not link:
            self._say(tr("There is no invite in that file."))

    def _save_wanted(self) -> None:
        file_dialog(self, tr("Save the invite"), lambda path: self.save_invite(Path(path)), saves="invite.waggle").open()

    def save_invite(self, path: Path) -> None:
        try:
            with open(path, "w", encoding="utf-8", opener=for_us) as file:  # it may hold the key of a private swarm
                file.write(f"{self._invitation.link}\n")
        except OSError as error:  # the link is still on the screen
            self.notice_posted.emit(tr("Not saved: %1").replace("%1", error.strerror or ""), "warn")
            return
        self.notice_posted.emit(tr("Saved to %1").replace("%1", str(path)), "check")
