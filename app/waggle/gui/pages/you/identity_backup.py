"""The identity: backed up under a passphrase, checked, restored or moved to another computer, and renewed."""

import asyncio
from typing import Literal

from PySide6.QtCore import Signal
from PySide6.QtGui import QHideEvent
from PySide6.QtWidgets import QFrame, QLineEdit, QWidget

from waggle.core.errors import EngineError
from waggle.gui.coroutines import Task, start
from waggle.gui.engine_client.engine_client import EngineClient
from waggle.gui.i18n.formatting import one_line, peer_name, tr, visible
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.file_dialogs import chosen_path, file_dialog
from waggle.gui.widgets.layout import as_widget, column, row
from waggle.gui.widgets.refusals import announce_refusal, refusal_words
from waggle.gui.widgets.text import ElidedLabel, say_in, text
from waggle.protocol.commands import BackUpIdentity, CheckBackup, RenewIdentity, RestoreIdentity, new_id
from waggle.protocol.events_identity import BackupRead, BackupWritten

Answer = asyncio.Future[BackupWritten] | asyncio.Future[BackupRead]
IdentityAction = Literal["backup", "check", "restore", "renew"]
SHORTEST = 8  # characters of a passphrase
TITLES: dict[IdentityAction, str] = {
    "backup": "Back up your identity", "check": "Check a backup", "restore": "Restore an identity", "renew": "New identity",
}  # fmt: skip
VERBS: dict[IdentityAction, str] = {"backup": "Back up", "check": "Check", "restore": "Look into it", "renew": "Start over"}
ABOUT: dict[IdentityAction, str] = {
    "backup": "One file, encrypted with a passphrase. Whoever has both is you. Without the passphrase nobody opens it, "
              "and there is no other way in: keep it as you keep a key.",
    "check": "The file is opened and closed again; nothing is changed.",
    "restore": "You see whose identity it is before anything changes. The identity of now is kept beside it, never overwritten.",
    "renew": "After you moved to another computer: this one makes itself a new name and key, and keeps the old key file. "
             "One key must never run on two computers at once: peers would take them for one.",
}  # fmt: skip


class IdentityBackupView(QFrame):
    """The form for one action on the identity. `here`: the engine runs on this computer.

    Leaving the view clears the passphrase and what was read with it.
    """

    done = Signal()

    def __init__(self, theme: Theme, client: EngineClient, *, here: bool) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._theme, self._client, self._backup_owner = theme, client, ""
        self._answer: Answer | None = None  # that is awaited
        self._asking: Task | None = None
        self._of = ""  # the path of the backup that is being read; empty once something is typed
        self._act: IdentityAction = "backup"
        self._mine = ""
        self._title, self._about = ElidedLabel(theme, role="title"), text(theme, "", "body", "soft", wrap=True)
        lies = tr("Where the backup lies") if here else tr("Its whole path on the computer that the engine runs on")
        self._path = self._field(tr("The file of the backup"), lies)
        self._choose = Button(theme, tr("Choose"))
        if not here:
            self._choose.hide()
        self._choose.clicked.connect(lambda: start(self, self._ask_for_file()))
        self._words, self._repeated = self._secret(tr("Passphrase")), self._secret(tr("The same passphrase again"))
        self._hint, self._message = text(theme, "", "small", "soft", wrap=True), text(theme, "", "small", wrap=True)
        self._go, self._back = Button(theme, "", "primary"), Button(theme, tr("Cancel"))
        self._go.clicked.connect(self._ask)
        self._back.clicked.connect(self.done)
        self._file_row = self._labelled_field(self._path, as_widget(row((self._path, 1), self._choose)))
        self._words_row, self._again_row = (self._labelled_field(field, field) for field in (self._words, self._repeated))
        for field in (self._path, self._words, self._repeated):
            field.textChanged.connect(self._drop_read_backup)
            field.returnPressed.connect(self._ask)
        self.setLayout(column(
            self._title, self._about, 4, self._file_row, self._words_row, self._again_row, self._hint, self._message,
            as_widget(row(None, self._back, self._go)), gap=10, margins=(24, 20, 24, 20),
        ))  # fmt: skip

        self.show_act("backup", "")

    def show_act(self, act: IdentityAction, mine: str) -> None:
        """Show the form for an action; `mine`: the name of the present identity."""
        self._stop_waiting()
        self._act, self._mine, self._backup_owner = act, mine, ""
        self._title.say(tr(TITLES[act]))
        self._about.setText(tr(ABOUT[act]))
        for field in (self._path, self._words, self._repeated):
            field.clear()
        self._file_row.setVisible(act != "renew")
        self._words_row.setVisible(act != "renew")
        self._again_row.setVisible(act == "backup")
        self._back.say(tr("Cancel"))
        self.say("")
        self._update_form()
        (self._path if act != "renew" else self._go).setFocus()

    def hideEvent(self, event: QHideEvent) -> None:
        """Clear the passphrase when another page is shown or the window closes, but not when the window is minimised."""
        super().hideEvent(event)
        if not event.spontaneous():
            self.forget()

    def forget(self) -> None:
        self._words.clear()  # this calls `_drop_read_backup`, which drops what was read
        self._repeated.clear()

    def take_over(self, before: "IdentityBackupView") -> None:
        """Take over the path and the awaited answer, but no passphrase."""
        self._path.setText(before._path.text())
        if before._answer is not None:
            self._of = before._of
            self._await(before._answer)

    def _await(self, answer: Answer) -> None:
        self._answer, self._asking = answer, start(self, self._show_answer(answer))
        self._update_form()

    def _stop_waiting(self) -> None:
        self._answer = None
        if self._asking is not None:
            self._asking.cancel()

    async def _show_answer(self, answer: Answer) -> None:
        try:
            event = await asyncio.shield(answer)
        except EngineError as error:
            self._answer = None
            self.say(refusal_words(error), "bad")
            self._update_form()
            announce_refusal(error, self._message, self._client)
            return
        self._answer = None
        if isinstance(event, BackupWritten):
            self.forget()
            self._back.say(tr("Done"))
            self.say(tr("Written to %1, read again, and it opens.").replace("%1", visible(event.path)), "good")
        elif isinstance(event, BackupRead) and event.path == self._of:
            self._read(event)
        self._update_form()

    def _read(self, event: BackupRead) -> None:
        name = peer_name(event.name, event.node)
        if self._act == "check":
            self._back.say(tr("Done"))
        if event.mine:
            self.say(tr("Valid backup of %1, your current identity.").replace("%1", name), "good")
        elif self._act == "check":
            self.say(tr("Valid backup of %1. This is not your current identity.").replace("%1", name))
        else:
            self._backup_owner = one_line(event.name)
            words = tr("It holds %1. You would be %1 from now on, and %2 would be kept beside it. Your model and history stay.")
            self.say(words.replace("%1", name).replace("%2", self._mine))

    def say(self, words: str, tone: str = "text") -> None:
        say_in(self._message, words, tone)

    def _drop_read_backup(self) -> None:
        """Drop what was read with the former path and passphrase."""
        if self._of:
            self._of = self._backup_owner = ""
            self.say("")
        self._update_form()

    def _update_form(self) -> None:
        words, act = self._words.text(), self._act
        hint = ""
        if act == "backup" and words and len(words) < SHORTEST:
            hint = tr("At least 8 characters; four words nobody would guess are good.")
        elif act == "backup" and self._repeated.text() and words != self._repeated.text():
            hint = tr("The two are not the same yet.")
        self._hint.setText(hint)
        self._hint.setVisible(bool(hint))
        complete = bool(self._path.text().strip() and words) and (
            act != "backup" or (not hint and words == self._repeated.text())
        )
        self._go.setEnabled((complete or act == "renew") and self._answer is None)
        self._go.say(tr("Become %1").replace("%1", self._backup_owner) if self._backup_owner else tr(VERBS[act]))

    def _ask(self) -> None:
        if not self._go.isEnabled():
            return
        self._of = path = self._path.text().strip()
        words = self._words.text()
        if self._act == "renew":
            self._leave_with(RenewIdentity(id=new_id()))
        elif self._backup_owner:
            self._leave_with(RestoreIdentity(id=new_id(), path=path, passphrase=words))
        elif self._act == "backup":
            self._await(self._client.ask(BackUpIdentity(id=new_id(), path=path, passphrase=words), BackupWritten))
        else:
            self._await(self._client.ask(CheckBackup(id=new_id(), path=path, passphrase=words), BackupRead))

    def _leave_with(self, command: RenewIdentity | RestoreIdentity) -> None:
        """Send a command after which the engine restarts; if no engine takes it, the form stays."""
        if self._client.send(command):
            self.done.emit()

    async def _ask_for_file(self) -> None:
        name = f"waggle-{self._mine.replace(' ', '-').lower() or 'me'}.identity" if self._act == "backup" else ""
        if path := await chosen_path(file_dialog(self, tr(TITLES[self._act]), saves=name)):
            self._path.setText(str(path))

    def _field(self, name: str, hint: str) -> QLineEdit:
        edit = QLineEdit()
        edit.setFont(self._theme.font("body"))
        edit.setAccessibleName(name)
        edit.setPlaceholderText(hint)
        edit.setFixedHeight(self._theme.size["control"])
        return edit

    def _labelled_field(self, field: QLineEdit, line: QWidget) -> QWidget:
        """A field with its name above it, because a placeholder disappears while typing."""
        name = text(self._theme, field.accessibleName(), "small", "soft")
        name.setBuddy(field)
        return as_widget(column(name, line, gap=4))

    def _secret(self, name: str) -> QLineEdit:
        edit = self._field(name, "")
        edit.setEchoMode(QLineEdit.EchoMode.Password)
        return edit
