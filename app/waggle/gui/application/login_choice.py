"""Carries out the setting of what starts at a login, in a thread: the system's commands may take a while."""

import asyncio

from PySide6.QtCore import QObject, Signal

from waggle.core import login_start
from waggle.core.errors import EngineError
from waggle.core.login_start import LoginStart
from waggle.core.message import Message
from waggle.core.paths import Home
from waggle.gui.coroutines import start
from waggle.gui.state.settings_store import SettingsStore


class LoginChoice(QObject):
    """`reported` carries title and advice of what the system did not do."""

    reported = Signal(object, object)  # messages: Qt would carry a text without their id

    def __init__(self, home: Home, settings_store: SettingsStore, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._home, self._store = home, settings_store
        self._chosen: LoginStart = self._store.settings.window.at_login
        self._one_at_a_time = asyncio.Lock()
        settings_store.changed.connect(self._carry_out)

    def read(self) -> None:
        """Show in the settings what really starts: a command or another program may have changed it since."""
        now = login_start.chosen(self._home)
        if now != self._chosen:
            self._chosen = now
            self._store.set({"window.at_login": now})

    def _carry_out(self) -> None:
        chosen = self._store.settings.window.at_login
        if chosen != self._chosen:
            self._chosen = chosen
            start(self, self._choose(chosen))

    async def _choose(self, chosen: LoginStart) -> None:
        try:
            async with self._one_at_a_time:
                trouble = await asyncio.to_thread(login_start.choose, chosen, self._home)
        except EngineError as error:
            self.reported.emit(error.title, error.advice)
            return
        if trouble:
            self.reported.emit(Message("It starts at the next login."), trouble)
