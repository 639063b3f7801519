"""Inviting others: the link to the active swarm, as a QR code and as text, to copy or to save as a file."""

from collections.abc import Awaitable
from pathlib import Path

from PySide6.QtCore import QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFrame, QLabel

from waggle.core.errors import EngineEnded, EngineError, NoEngine
from waggle.core.message import as_message
from waggle.core.paths import owner_only
from waggle.core.system.os_faults import fault_of
from waggle.gui.coroutines import Task, start
from waggle.gui.engine_client.engine_client import EngineClient
from waggle.gui.i18n.formatting import one_line, tr
from waggle.gui.i18n.placeholders import why_unavailable
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.responsive_row import ResponsiveRow, StretchRow
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.controls.copy_button import CopyButton
from waggle.gui.widgets.controls.inputs import CodeField
from waggle.gui.widgets.file_dialogs import chosen_path, file_dialog
from waggle.gui.widgets.layout import as_widget, column, row
from waggle.gui.widgets.painted_widgets import Icon
from waggle.gui.widgets.qr_code import QrCode
from waggle.gui.widgets.text import announce, spoken, text
from waggle.protocol.commands import WriteInvite, new_id
from waggle.protocol.events import CommandDone
from waggle.protocol.events_swarms import InviteWritten
from waggle.protocol.state import State

ANYWHERE = "It works from anywhere."  # an invite's `reach`, unless it works for some people only


class InviteView(QFrame):
    """Shows an invite while it is open, and asks for a new one when others reach this computer in another way.

    `closed`: the person is done here, or no invite will come; `notice_posted` as in `Page`.
    """

    closed = Signal()
    notice_posted = Signal(str, str)

    def __init__(self, theme: Theme, client: EngineClient, host: str = "") -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._client, self._host = client, host  # the computer of the engine; empty: this one
        self._state, self._link, self._class_page = State(), "", ""
        self._is_open = False
        self._announced = ""
        self._writing: Task | None = None  # waits for an invite
        self._requested_for: object = None  # the ways to reach this computer when the invite was requested
        self._title, self._reach = text(theme, "", "title", wrap=True), text(theme, "", "small", "soft", wrap=True)
        self._code = QrCode(theme, 292, tr("The invite link as a QR code; the same link stands beside it as text"))
        self._field = CodeField(theme, tr("The invite link"))
        self._field.setReadOnly(True)
        self._near_only = text(theme, "", "small", wrap=True)
        sign = column(Icon(theme, "warn", "accent_text", 16), None)
        self._near_row = as_widget(row(sign, (self._near_only, 1), gap=8))
        self._near_row.hide()
        self._warning: QLabel = text(theme, "", "small", "soft", wrap=True)
        self._copy = CopyButton(theme, tr("Copy link"), "primary")
        self._save = Button(theme, tr("Save as a file"), icon="save")
        self._save.clicked.connect(lambda: start(self, self._ask_where_to_save()))
        self._project = Button(theme, tr("Show it on a projector"))
        self._project.clicked.connect(self._open_class_page)
        self._join_page = text(theme, "", "small", "soft", wrap=True)
        back = Button(theme, tr("Done"))
        back.clicked.connect(self.closed)
        self._how = text(theme, "", wrap=True)
        words = column(
            self._title, self._how, 8, self._near_row, self._field, ResponsiveRow(self._copy, self._save, self._project), 8,
            self._join_page, self._reach, self._warning, None,
            as_widget(row(None, back)), gap=8,
        )  # fmt: skip
        self._scanned = as_widget(column(row(self._code, None), None))
        self.setLayout(column(StretchRow((self._scanned, 0), (as_widget(words), 1), gap=28), margins=(24, 24, 24, 20)))

    def open(self) -> None:
        """Request an invite and keep it up to date until `stop_waiting`."""
        self._is_open, self._requested_for, self._announced = True, None, ""
        self._request()

    def stop_waiting(self) -> None:
        """Another view is shown: no invite is awaited any more."""
        self._is_open = False
        if self._writing is not None:
            self._writing.cancel()

    def show_state(self, state: State) -> None:
        self._state = state
        if self._is_open:
            if not why_unavailable(state):
                self._request()
            self._show_invite()

    def take_over(self, before: "InviteView") -> None:
        """Take over whether it is open, and what the last invite was requested for; one that is awaited is requested again."""
        self._state, self._is_open = before._state, before._is_open
        if before._writing is not None and before._writing.done():
            self._requested_for = before._requested_for

    def save(self, path: Path) -> None:
        """Write the link to a file; post a notice that says whether that worked."""
        try:
            with open(path, "w", encoding="utf-8", opener=owner_only) as file:  # it may hold the key of a private swarm
                file.write(f"{self._link}\n")
        except OSError as error:  # the link is still on the screen
            self.notice_posted.emit(tr("Not saved: %1").replace("%1", fault_of(error).reason), "warn")
            return
        self.notice_posted.emit(tr("Saved to %1").replace("%1", str(path)), "check")

    async def _ask_where_to_save(self) -> None:
        if path := await chosen_path(file_dialog(self, tr("Save the invite"), saves="invite.waggle")):
            self.save(path)

    def _open_class_page(self) -> None:
        QDesktopServices.openUrl(QUrl(self._class_page))

    def _request(self) -> None:
        """Request an invite, again once others reach this computer in another way: the addresses in the last one may be dead."""
        state = self._state
        reached = state.ready, state.address, state.way
        if reached != self._requested_for:
            self._requested_for = reached
            self._writing = start(self, self._close_if_refused(self._client.command(WriteInvite(id=new_id()))))

    async def _close_if_refused(self, answer: Awaitable[CommandDone]) -> None:
        try:
            await answer
        except (NoEngine, EngineEnded):
            self._requested_for = None  # request it again once an engine can be asked
        except EngineError as error:
            self._client.report(error)
            self.closed.emit()

    def _show_invite(self) -> None:
        state = self._state
        invite = state.invite
        if invite is not None and (state.ready is None or invite.charter != state.ready.charter):
            invite = None  # of the swarm before
        private = any(swarm.active and swarm.private for swarm in state.swarms.swarms) if state.swarms else False
        self._show_link(invite, one_line(state.ready.swarm) if state.ready else "", private=private)

    def _show_link(self, invite: InviteWritten | None, swarm: str, *, private: bool) -> None:
        self._title.setText(tr("Invite someone to %1").replace("%1", swarm))
        self._link = invite.link if invite else ""
        self._show_code()
        if self._field.text() != self._link:
            self._field.setText(self._link)
            self._field.setCursorPosition(0)
        self._copy.offer(self._link)
        for button in (self._copy, self._save):
            button.setEnabled(bool(self._link))
        unavailable = why_unavailable(self._state)
        waiting = unavailable or tr("Preparing the link: a few seconds.")
        self._field.setPlaceholderText("" if self._link else waiting)  # screen readers say it, with a link beside it, too
        scanned = tr("Its QR code is on the screen.") if self._code.fits else ""
        ready = tr("The link is ready: copy it, or save it as a file."), scanned
        self._announce(spoken(self._title.text(), *(ready if self._link else (waiting,))))
        still = tr("The link works as long as this computer, or another one listed in it, is on.")
        reach = invite.reach if invite else ""
        anywhere = as_message(reach).id == ANYWHERE
        self._reach.setText(f"{tr(reach)} {still}" if anywhere else still)
        self._near_only.setText("" if anywhere else tr(reach))
        self._near_row.setVisible(bool(self._near_only.text()))
        near = invite.join_page if invite else ""
        self._join_page.setText(tr("Others on your network can also open %1").replace("%1", near))
        self._join_page.setVisible(bool(near))
        self._class_page = invite.class_page if invite else ""
        self._project.setVisible(bool(self._class_page) and not self._host)
        key = tr("The link holds the key of this private swarm: whoever has it can join, and it cannot be taken back. "
                 "To shut somebody out, create a new swarm.")  # fmt: skip
        self._warning.setText(key if private else "")
        self._warning.setVisible(private)

    def _announce(self, words: str) -> None:
        """Say what this is, and once the link is ready, that it is."""
        if words != self._announced:
            self._announced = words
            announce(self, words)

    def _show_code(self) -> None:
        """Show the QR code, or that the link is too long for one; it can still be copied and saved."""
        self._code.show_words(self._link)
        self._scanned.setVisible(self._code.fits)
        self._how.setText(
            tr(
                "Send the link, or a picture of the code. "
                "The other person needs Waggle on their computer, and sees the swarm before they join."
            )
            if self._code.fits
            else tr("This link is too long for a QR code. They open it, and Waggle shows them the swarm before they join.")
        )
