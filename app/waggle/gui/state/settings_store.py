"""The settings as the window reads and changes them: through the engine while it runs, else in the file."""

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace
from PySide6.QtCore import QObject, Signal

from waggle.core import settings
from waggle.core.errors import SettingsError
from waggle.core.settings import Settings, Value
from waggle.protocol.commands import AnyCommand, ChangeSettings, new_id
from waggle.protocol.state import State

OWN = "window."  # settings of this window, wherever the engine runs


class SettingsStore(QObject):
    """`changed`: a setting changed, or a change was refused and undone; `refused` carries why (title, advice).

    Without a file, as in a replay, changes last until the window is closed. `far`: the engine runs on another computer, and only
    the `window.` settings of the file here are used. `send` passes a command to the engine; False if no engine takes it.
    """

    changed = Signal()
    refused = Signal(object, object)  # messages: Qt would carry a text without their id

    def __init__(
        self, path: Path | None, overrides: tuple[str, ...] = (), parent: QObject | None = None, *,
        send: Callable[[AnyCommand], bool] = lambda command: False, far: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._path, self._initial_overrides, self._send, self.far = path, overrides, send, far
        self.overrides = overrides  # of the command line, without what was changed since: for the next engine
        self.after_restart: tuple[str, ...] = ()
        self.settings = Settings()
        self._last_received: Settings | None = None  # the last received, from an engine that may have ended
        self._read()

    def _read(self) -> None:
        if self._path is not None:
            with contextlib.suppress(SettingsError):  # the engine reads the same file and reports the error in the window
                self.settings = self._from_file(settings.read(self._path, self.overrides))

    @property
    def is_unreadable(self) -> bool:
        """Whether the settings file cannot be read now: the settings shown are not those in the file."""
        if self._path is None or self.far:
            return False
        try:
            settings.read(self._path)
        except SettingsError:
            return True
        return False

    def set_aside(self) -> Path | None:
        """Rename an unreadable file and use the defaults; returns its new path. Raises SettingsError."""
        if self._path is None or not self.is_unreadable:  # it was repaired meanwhile
            return None
        set_aside_path = settings.set_aside(self._path)
        self.settings = Settings()
        self._read()
        self.changed.emit()
        return set_aside_path

    def copy_in_memory(self) -> "SettingsStore":
        """Copy the settings for a recorded run: changes are not written to a file."""
        copy = SettingsStore(None)
        copy.settings = self.settings
        return copy

    def value(self, key: str) -> Value:
        return settings.value_of(self.settings, key)

    def is_default(self, key: str) -> bool:
        return self.value(key) == settings.value_of(Settings(), key)

    def set(self, values: Mapping[str, Value]) -> None:
        """Set `section.name` keys; None means the default. Takes effect at once, or emits `refused`."""
        own = {key: value for key, value in values.items() if self.far and key.startswith(OWN)}
        others = {key: value for key, value in values.items() if key not in own}
        sent = bool(others) and self._path is not None and self._send(ChangeSettings(id=new_id(), values=others))
        if sent and not own:
            return  # the engine reports the result
        try:
            if others and not sent and self.far:
                raise SettingsError("The other computer does not answer: nothing was changed.", "Try again when it does.")
            self.settings = self._write(own if sent else values)
        except SettingsError as error:
            self.refused.emit(error.title, error.advice)
        self.changed.emit()

    def adopt(self, state: State) -> None:
        """Adopt the engine's settings if they are new; the same ones again may be older than a change made after it ended."""
        if state.settings is None or self._path is None:
            return
        if state.settings is self._last_received and state.after_restart == self.after_restart:
            return
        self._last_received = state.settings
        received = replace(state.settings, window=self.settings.window) if self.far else state.settings
        if not state.service:  # a service never sees this window's command line
            self.overrides = tuple(
                override for override in self._initial_overrides if settings.matches_override(override, received)
            )
        if (received, state.after_restart) != (self.settings, self.after_restart):
            self.settings, self.after_restart = received, state.after_restart
            self.changed.emit()

    def _from_file(self, file_settings: Settings) -> Settings:
        """The settings in the file here, as far as they are used."""
        return replace(self.settings, window=file_settings.window) if self.far else file_settings

    def _write(self, values: Mapping[str, Value]) -> Settings:
        if self._path is not None:
            remaining = tuple(override for override in self.overrides if override.partition("=")[0].strip() not in values)
            changed = settings.change(self._path, values, remaining)
            self.overrides = remaining
            return self._from_file(changed)
        table = msgspec.to_builtins(self.settings)
        for key, value in values.items():
            section, _, name = key.partition(".")
            table[section][name] = settings.value_of(Settings(), key) if value is None else value
        return msgspec.convert(table, Settings)
