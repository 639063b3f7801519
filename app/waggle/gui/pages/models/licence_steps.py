"""How to get a model that the hub gives only to those who accepted its licence: its page, and an access token."""

import asyncio

from PySide6.QtCore import QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QLineEdit, QWidget

from waggle.core import hub_token
from waggle.core.errors import TokenError
from waggle.core.model_reference import HUBS
from waggle.gui.coroutines import start
from waggle.gui.i18n.formatting import tr, visible
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.responsive_row import StretchRow
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.controls.copy_button import CopyButton
from waggle.gui.widgets.controls.inputs import CodeField
from waggle.gui.widgets.layout import column
from waggle.gui.widgets.text import say_in, text

COMMAND = "waggle token"
TOKEN_WIDE = 440  # pixels of the field for a token, at a text size of 100%


def _command(theme: Theme) -> QWidget:
    """The command that asks for a token, and a button that copies it."""
    command = CodeField(theme, tr("The command"))
    command.setReadOnly(True)
    command.setText(COMMAND)
    copy = CopyButton(theme, tr("Copy"))
    copy.offer(COMMAND)
    return StretchRow((command, 1), (copy, 0))


def _step(theme: Theme, words: str, act: Button) -> QWidget:
    """What to do, and directly behind it the button for it."""
    label = text(theme, words, "body", wrap=True)
    label.setMaximumWidth(label.fontMetrics().horizontalAdvance(words) + 1)
    return StretchRow((label, 1000), (act, 0), (QWidget(), 1), gap=16)


class LicenceSteps(QWidget):
    """Two steps. The token goes into the keychain of this computer, and its field is emptied at once.

    `retried`: the model is to be chosen again, with a new token or with the one that is stored. With an engine elsewhere, the
    token is stored there, and nothing here asks for the model again.
    """

    retried = Signal()

    def __init__(self, theme: Theme, *, here: bool) -> None:
        """`here`: the engine runs on this computer, so that it finds a token in this keychain."""
        super().__init__()
        self._address, self._why_not, self._storing = "", "", False
        page, make = Button(theme, tr("Open its page"), small=True), Button(theme, tr("Get a token"), small=True)
        page.clicked.connect(lambda: QDesktopServices.openUrl(QUrl(self._address)))
        make.clicked.connect(lambda: QDesktopServices.openUrl(QUrl(hub_token.TOKENS)))
        accept = tr("1. Accept its licence on its page, with a free Hugging Face account.")
        paste = tr("2. Paste an access token of that account, unless you gave one before.") if here else tr(
            "2. The engine runs on another computer. Run this in a terminal there, and paste an access token of that account:"
        )  # fmt: skip
        self._token = QLineEdit()
        self._token.setFont(theme.font("body"))
        self._token.setEchoMode(QLineEdit.EchoMode.Password)
        self._token.setAccessibleName(tr("Access token"))
        self._token.setPlaceholderText(tr("Access token"))
        self._token.setFixedHeight(theme.size["control"])
        self._token.returnPressed.connect(self._act)
        self._token.setMaximumWidth(theme.px(TOKEN_WIDE))
        self._go = Button(theme, tr("Continue"), "primary")
        self._go.clicked.connect(self._act)
        self._complaint = text(theme, "", "small", "bad", wrap=True)
        self._complaint.hide()
        about = text(
            theme,
            tr("Stored in this computer's keychain, sent only to Hugging Face, and never shown again."),
            "small",
            "soft",
            wrap=True,
        )
        if not here:  # never show what has no parent yet
            about.hide()
        self.setLayout(
            column(
                _step(theme, accept, page),
                _step(theme, paste, make),
                StretchRow((self._token, 1), (self._go, 0), (QWidget(), 0)) if here else _command(theme),
                self._complaint,
                about,
                gap=8,
            )
        )
        self._show_act()

    def show_model(self, name: str, why_not: str) -> None:
        """`name`: owner/name of the model, perhaps with a revision; `why_not`: why it cannot be chosen now."""
        self._address, self._why_not = f"https://{HUBS[0]}/{name.partition('@')[0]}", why_not
        self._show_act()

    def _show_act(self) -> None:
        self._go.setEnabled(not self._why_not and not self._storing)
        self._go.setToolTip(self._why_not)

    def _act(self) -> None:
        if not self._go.isEnabled():
            return
        say_in(self._complaint, "", "bad")
        token = self._token.text().strip()
        self._token.clear()
        if token:
            start(self, self._store(token))
        else:
            self.retried.emit()

    async def _store(self, token: str) -> None:
        """Store the token in a thread, because the keychain may ask the person for its password."""
        self._storing = True
        self._show_act()
        try:
            await asyncio.to_thread(hub_token.store, token)
        except TokenError as error:
            say_in(self._complaint, visible(f"{tr(error.title)} {tr(error.advice)}".strip()), "bad")
        else:
            self.retried.emit()
        finally:
            self._storing = False
            self._show_act()
