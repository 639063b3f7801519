"""Joining a swarm: enter an invite link or open its file, preview the swarm, then join. Nothing joins by itself."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QFrame, QStackedWidget, QWidget

from waggle.core.errors import EngineError, NoEngine, SwarmError
from waggle.core.system.os_faults import fault_of
from waggle.gui.coroutines import Task, start
from waggle.gui.engine_client import picture_invite
from waggle.gui.engine_client.engine_client import EngineClient
from waggle.gui.i18n.formatting import later, one_line, tr, visible
from waggle.gui.pages.swarms.swarm_preview import SwarmPreviewCard, answered_words, remembered_words
from waggle.gui.state.inputs.invite_link import LONGEST_TEXT, invite_in, invite_in_file, is_picture
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.responsive_row import StretchRow
from waggle.gui.widgets.containers.scroll_area import ScrollArea
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.controls.inputs import CodeField
from waggle.gui.widgets.file_dialogs import chosen_path, file_dialog
from waggle.gui.widgets.layout import card, column, empty, row, rule
from waggle.gui.widgets.painted_widgets import Icon
from waggle.gui.widgets.pasted_picture import PastedPicture
from waggle.gui.widgets.refusals import announce_refusal, refusal_words
from waggle.gui.widgets.text import say_in, text
from waggle.protocol.commands import ChooseSwarm, ReadInvite, new_id
from waggle.protocol.events_swarms import InviteRead, SwarmDetails
from waggle.protocol.state import State

LINK, PREVIEW = range(2)
WIDEST = 680  # pixels of the form for a link
ASKING = later("Asking the computers that the link names; a few seconds.")


class JoinView(QStackedWidget):
    """The form for a link, then the preview of its swarm. Waits for one answer of the engine at a time.

    `opened`: this view should be shown now; `closed`: the person is done here.
    """

    opened = Signal()
    closed = Signal()

    def __init__(self, theme: Theme, client: EngineClient) -> None:
        super().__init__()
        self._theme, self._client, self._state = theme, client, State()
        self._reading: Task | None = None  # waits for the swarm of a link
        # a swarm; what tells its members in words; whether its invite leads to others
        self._previewed: tuple[SwarmDetails, Callable[[], str], bool] | None = None
        self._previews = column()
        self._link_form = ScrollArea(column(row((self._link_card(), 1), (QWidget(), 0)), None))
        self._preview_area = ScrollArea(self._previews)
        self.addWidget(self._link_form)
        self.addWidget(self._preview_area)

    def _link_card(self) -> QFrame:
        theme = self._theme
        self._link = CodeField(theme, tr("An invite link"))
        self._link.setPlaceholderText(tr("Paste the invite link, or a picture of its QR code"))
        self._link.returnPressed.connect(self._read_link)
        PastedPicture(self._link).pasted.connect(self.open_picture)
        read = Button(theme, tr("Preview"), "primary")
        read.clicked.connect(self._read_link)
        read.setEnabled(False)
        self._link.textChanged.connect(lambda words: read.setEnabled(bool(words.strip())))
        file = Button(theme, tr("Open a file or picture"))
        file.clicked.connect(lambda: start(self, self._choose_file()))
        cancel = Button(theme, tr("Cancel"))
        cancel.clicked.connect(self.closed)
        self._message = text(theme, "", "small", "bad", wrap=True)
        preview = (
            ("learn", tr("What the swarm trains on, with an example")),
            ("shield", tr("What you would share, and what stays on this computer")),
            ("peers", tr("How many computers are there now")),
        )
        facts = [
            row(Icon(theme, icon, "accent_text", 18), (text(theme, fact, "small", wrap=True), 1), gap=10)
            for icon, fact in preview
        ]
        whole = card(
            text(theme, tr("Join with an invite"), "title"), self._link, self._message,
            StretchRow((file, 0), (QWidget(), 1), (cancel, 0), (read, 0)), 4, rule(), 4,
            text(theme, tr("The preview does not join yet. It shows:"), "label", "soft", wrap=True), *facts, gap=10, pad=24,
        )  # fmt: skip
        whole.setMaximumWidth(theme.px(WIDEST))
        return whole

    def set_edges(self, edge: int, below: int) -> None:
        """Room at the sides and below, in pixels."""
        self._link_form.set_edges(edge, below)
        self._preview_area.set_edges(edge, below)

    def show_state(self, state: State) -> None:
        self._state = state

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
        if is_picture(path):
            self.open_picture(path)
            return
        try:
            link = invite_in_file(path)
        except OSError as error:  # the file is gone or may not be read: nothing of ours is lost
            self.show_link()
            self._say(tr("The file cannot be read: %1.").replace("%1", fault_of(error).reason))
            return
        self.show_link(link)
        if not link:
            self._say(tr("There is no invite in that file."))

    def open_picture(self, picture: Path | QImage) -> None:
        """Preview the swarm of the invite whose QR code is in a picture, or say that there is none."""
        self.show_link()
        self._say(tr("Looking for a QR code in the picture."), "soft")
        self._reading = start(self, self._read_picture(picture))

    async def _read_picture(self, picture: Path | QImage) -> None:
        try:
            self.show_link(await picture_invite.invite_in(picture))
        except SwarmError as error:
            self._say(refusal_words(error))
            announce_refusal(error, self._message, self._client)

    def preview_known(self, charter: str) -> None:
        """Preview a remembered swarm."""
        known = self._state.swarms.swarms if self._state.swarms else ()
        for swarm in known:
            if swarm.charter == charter:
                self.preview(swarm, partial(remembered_words, swarm))

    def preview(self, swarm: SwarmDetails, members_words: Callable[[], str], *, leads_to_others: bool = False) -> None:
        """Preview a swarm; `members_words` says, in the window's language, who is in it; `leads_to_others` as in InviteRead."""
        preview = self._add_preview(swarm, members_words, leads_to_others=leads_to_others)
        self.opened.emit()
        self.stop_waiting()
        self.setCurrentIndex(PREVIEW)
        preview.no.setFocus()  # a key that was meant for the view before must not join

    def stop_waiting(self) -> None:
        """Wait for no answer any more: it would bring this view back in front of another one."""
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def take_over(self, before: "JoinView") -> None:
        """Take over the view and the text of the same view in an earlier window; a link that is being read is read anew."""
        self._state = before._state
        self._link.setText(before._link.text())
        self._say(before._message.text(), str(before._message.property("tone")))
        if before.currentIndex() == PREVIEW and before._previewed is not None:
            swarm, members_words, leads_to_others = before._previewed
            self._add_preview(swarm, members_words, leads_to_others=leads_to_others)
        self.setCurrentIndex(before.currentIndex())
        if before._reading is not None and not before._reading.done():
            before.stop_waiting()
            self._read_link()

    def _add_preview(self, swarm: SwarmDetails, members_words: Callable[[], str], *, leads_to_others: bool) -> SwarmPreviewCard:
        self._previewed = swarm, members_words, leads_to_others
        empty(self._previews)
        state = self._state
        preview = SwarmPreviewCard(
            self._theme,
            swarm,
            about=members_words(),
            leaving=one_line(state.ready.swarm) if state.ready else tr("this swarm"),
            round_=state.round,
            why_not=tr(state.swarms.fixed) if state.swarms else "",
            leads_to_others=leads_to_others,
        )
        preview.accepted.connect(self._join)
        preview.declined.connect(self.closed)
        self._previews.addWidget(preview)
        self._previews.addStretch(1)
        return preview

    def _join(self, charter: str, name: str | None) -> None:
        """Join; if no engine takes that, the preview stays."""
        if self._client.send(ChooseSwarm(id=new_id(), charter=charter, member_name=name)):
            self.closed.emit()

    def _read_link(self) -> None:
        """Have the engine read the link and ask who is in its swarm."""
        self.stop_waiting()
        link = self._link.text().strip()
        if not link:
            self._say(tr("Paste the link first."))
            return
        self._say(tr(ASKING), "soft")
        command = ReadInvite(id=new_id(), link=(invite_in(link) or link)[:LONGEST_TEXT])
        self._reading = start(self, self._preview_answer(self._client.ask(command, InviteRead)))

    async def _preview_answer(self, answer: Awaitable[InviteRead]) -> None:
        try:
            read = await answer
        except NoEngine:
            self._say(tr("Starting up. The link is checked in a moment."), "soft")
            await self._client.until_heard()
            self._read_link()
        except EngineError as error:
            self._say(refusal_words(error))
            announce_refusal(error, self._message, self._client)
        else:
            self.preview(read.swarm, partial(answered_words, read), leads_to_others=read.leads_to_others)

    def _say(self, words: str, tone: str = "bad") -> None:
        say_in(self._message, visible(words), tone)

    async def _choose_file(self) -> None:
        if path := await chosen_path(file_dialog(self, tr("Open an invite"))):
            self.open_file(path)
