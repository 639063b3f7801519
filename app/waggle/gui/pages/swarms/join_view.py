"""Joining a swarm: enter an invite link or open its file, preview the swarm, then join. Nothing joins by itself."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QStackedWidget

from waggle.core.system.os_faults import fault_of
from waggle.gui.i18n.formatting import later, one_line, tr, visible
from waggle.gui.pages.swarms.link_field import link_field
from waggle.gui.pages.swarms.swarm_preview import SwarmPreviewCard, answered_words, remembered_words
from waggle.gui.state.invite_link import LONGEST_TEXT, invite_in, invite_in_file
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.file_dialogs import file_dialog
from waggle.gui.widgets.layout import as_widget, card, column, empty, row
from waggle.gui.widgets.scroll_anchor import is_in_view
from waggle.gui.widgets.scroll_area import ScrollArea
from waggle.gui.widgets.text import say_in, text
from waggle.protocol.commands import ChooseSwarm, ReadInvite, new_id
from waggle.protocol.events_swarms import SwarmDetails
from waggle.protocol.state import State

LINK, PREVIEW = range(2)
ASKING = later("Asking the computers that the link names; a few seconds.")


class JoinView(QStackedWidget):
    """The form for a link, then the preview of its swarm. Waits for one answer of the engine at a time.

    `opened`: this view should be shown now; `closed`: the person is done here.
    """

    commanded = Signal(object)
    opened = Signal()
    closed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme, self._state = theme, State()
        self._awaited = ""  # the id of the ReadInvite whose answer is awaited
        self._joining = ""  # the id of the ChooseSwarm that was sent last; empty once it was refused
        self._is_deferred = False  # a link was entered before there was an engine to ask
        self._previewed: tuple[SwarmDetails, Callable[[], str]] | None = None  # a swarm; what tells its members in words
        self._previews = column()
        self._link_form = ScrollArea(column(self._link_card(), None))
        self._preview_area = ScrollArea(self._previews)
        self.addWidget(self._link_form)
        self.addWidget(self._preview_area)

    def _link_card(self) -> QFrame:
        theme = self._theme
        self._link = link_field(theme, tr("An invite link"))
        self._link.setPlaceholderText(tr("Paste an invite link: waggle://join?…"))
        self._link.returnPressed.connect(self._read_link)
        read = Button(theme, tr("Preview it"), "primary")
        read.clicked.connect(self._read_link)
        file = Button(theme, tr("Open a file"))
        file.clicked.connect(self._choose_file)
        cancel = Button(theme, tr("Cancel"))
        cancel.clicked.connect(self.closed)
        self._message = text(theme, "", "small", "bad", wrap=True)
        about = text(
            theme, tr("You see what the swarm is and what would be shared; nothing is joined until you say so."), wrap=True
        )
        return card(
            text(theme, tr("Join by a link"), "title"), about, as_widget(row((self._link, 1), read)),
            self._message, as_widget(row(file, None, cancel)), gap=12, pad=24,
        )  # fmt: skip

    def set_edges(self, edge: int, below: int) -> None:
        """Room at the sides and below, in pixels."""
        self._link_form.set_edges(edge, below)
        self._preview_area.set_edges(edge, below)

    def show_state(self, state: State) -> None:
        before, self._state = self._state, state
        if self._is_deferred and state.seq != before.seq:  # an engine is there now
            self._is_deferred = False
            self._read_link()
        if self._awaited and state.looked is not None and state.looked is not before.looked:
            self.preview(state.looked.swarm, partial(answered_words, state.looked))

    def show_link(self, link: str = "") -> None:
        """Show the form; preview the swarm of `link`, if there is one."""
        self.opened.emit()
        self.stop_waiting()
        self.setCurrentIndex(LINK)
        self._say("")
        self._link.setText(one_line(link))
        self._link.setFocus()
        if link:
            self._read_link()

    def open_file(self, path: Path) -> None:
        """Preview the swarm of the invite in a file, or say that the file has none."""
        try:
            link = invite_in_file(path)
        except OSError as error:  # the file is gone or may not be read: nothing of ours is lost
            self.show_link()
            self._say(tr("The file cannot be read: %1.").replace("%1", fault_of(error).reason))
            return
        self.show_link(link)
        if not link:
            self._say(tr("There is no invite in that file."))

    def preview_known(self, charter: str) -> None:
        """Preview a remembered swarm."""
        known = self._state.swarms.swarms if self._state.swarms else ()
        for swarm in known:
            if swarm.charter == charter:
                self.preview(swarm, partial(remembered_words, swarm))

    def preview(self, swarm: SwarmDetails, members_words: Callable[[], str]) -> None:
        """Preview a swarm; `members_words` says, in the window's language, who is in it."""
        preview = self._add_preview(swarm, members_words)
        self.opened.emit()
        self.stop_waiting()
        self.setCurrentIndex(PREVIEW)
        preview.no.setFocus()  # a key that was meant for the view before must not join

    def stop_waiting(self) -> None:
        """Wait for no answer any more: it would bring this view back in front of another one."""
        self._awaited, self._is_deferred = "", False

    def take_over(self, before: "JoinView") -> None:
        """Take over the view, the text and the awaited answer of the same view in an earlier window."""
        self._state = before._state
        self._link.setText(before._link.text())
        message = tr(ASKING) if before._awaited else before._message.text()  # in the current language
        self._say(message, str(before._message.property("tone")))
        if before.currentIndex() == PREVIEW and before._previewed is not None:
            self._add_preview(*before._previewed)
        self.setCurrentIndex(before.currentIndex())
        self._awaited, self._is_deferred = before._awaited, before._is_deferred

    def postpone(self, command: str) -> bool:
        """No engine took this command: if it was about a link, ask again when there is one. Returns whether it was."""
        if not self._awaited or command != self._awaited:
            return False
        self._is_deferred, self._awaited = True, ""
        self._say(tr("Starting up. The link is checked in a moment."), "soft")
        return True

    def handle_refusal(self, words: str, command: str) -> bool:
        """The command with this id, or (empty) every command, was refused; returns whether this view shows the reason."""
        if command in ("", self._joining):
            self._joining = ""
        if not self._awaited or command not in ("", self._awaited):
            return False
        self._awaited = ""
        self._say(words)
        return is_in_view(self._message)

    def _add_preview(self, swarm: SwarmDetails, members_words: Callable[[], str]) -> SwarmPreviewCard:
        self._previewed = swarm, members_words
        empty(self._previews)
        state = self._state
        preview = SwarmPreviewCard(
            self._theme,
            swarm,
            about=members_words(),
            leaving=one_line(state.ready.swarm) if state.ready else tr("this swarm"),
            round_=state.round,
            why_not=tr(state.swarms.fixed) if state.swarms else "",
        )
        preview.accepted.connect(self._join)
        preview.declined.connect(self.closed)
        self._previews.addWidget(preview)
        self._previews.addStretch(1)
        return preview

    def _join(self, charter: str, name: str | None) -> None:
        self._joining = new_id()
        self.commanded.emit(ChooseSwarm(id=self._joining, charter=charter, member_name=name))
        if self._joining:  # else it was refused at once, and the preview stays
            self.closed.emit()

    def _read_link(self) -> None:
        """Have the engine read the link and ask who is in its swarm."""
        link = self._link.text().strip()
        if not link:
            self._say(tr("Paste the link first."))
            return
        self._awaited = new_id()
        self._say(tr(ASKING), "soft")
        self.commanded.emit(ReadInvite(id=self._awaited, link=(invite_in(link) or link)[:LONGEST_TEXT]))

    def _say(self, words: str, tone: str = "bad") -> None:
        say_in(self._message, visible(words), tone)

    def _choose_file(self) -> None:
        file_dialog(self, tr("Open an invite"), lambda path: self.open_file(Path(path))).open()
