"""The settings in force: they change while the engine runs, are stored in the file, and apply at once where possible."""

from collections.abc import Callable, Mapping
from pathlib import Path

from waggle.core import settings
from waggle.core.settings import Settings, Value
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.protocol import events

# All others wait for the engine's next start, and of these the device.
APPLIED_AT_ONCE = ("when.", "window.", "computer.", "swarm.leaderboard", "swarm.my_answers")
APPLIED_AT_RESTART = ("computer.device",)

Apply = Callable[[Settings], tuple[str, ...]]  # applies settings; returns the names of those that could not change at once


class LiveSettings:
    """The settings of the file and the command line, as they are `now`."""

    def __init__(self, path: Path, overrides: tuple[str, ...], publisher: EventPublisher) -> None:
        """Read them. Raises SettingsError."""
        self._path, self._overrides, self._publisher = path, overrides, publisher
        self.now = self._at_start = settings.read(path, overrides)
        self._callbacks: list[Apply] = []

    def begin(self) -> Settings:
        """Return the settings that an engine starts with, and drop the callbacks of the engine before it."""
        self._callbacks.clear()
        self._at_start = self.now
        self._publish()
        for reason in settings.unusable(self._path):
            self._publisher.publish(events.Warned(title=reason.title, advice=reason.advice))
        return self.now

    def call_on_change(self, callback: Apply) -> None:
        """Call this with the settings after each change."""
        self._callbacks.append(callback)

    def apply(self, *callbacks: Apply) -> None:
        """Call these now and after each change: a change during startup must reach them, too."""
        self._callbacks += callbacks
        if unchanged := tuple(key for callback in callbacks for key in callback(self.now)):
            self._publish(unchanged)

    def may_share(self) -> bool:
        """Whether a person's own answers may leave this computer."""
        return self.now.swarm.my_answers == "yes"

    def change(self, values: Mapping[str, Value]) -> Callable[[], None]:
        """Change all of these settings or none, and forget what the command line set them to. Raises SettingsError.

        Return a function that undoes the change, in the file and for this run.
        """
        dropped = tuple(override for override in self._overrides if override.partition("=")[0].strip() in values)
        before = settings.stored_values(self._path, values)
        self._set(values, tuple(override for override in self._overrides if override not in dropped))
        return lambda: self._set(before, (*self._overrides, *dropped))

    def _set(self, values: Mapping[str, Value], overrides: tuple[str, ...]) -> None:
        self.now, self._overrides = settings.change(self._path, values, overrides), overrides
        self._publish(tuple(key for callback in self._callbacks for key in callback(self.now)))

    def _publish(self, unchanged: tuple[str, ...] = ()) -> None:
        after_restart = (*settings_for_restart(self._at_start, self.now), *unchanged)
        self._publisher.publish(events.SettingsChanged(settings=self.now, after_restart=after_restart))


def applies_at_once(key: str) -> bool:
    """Whether a change of the setting `section.name` applies while the engine runs; all others wait for its next start."""
    return key.startswith(APPLIED_AT_ONCE) and key not in APPLIED_AT_RESTART


def settings_for_restart(then: Settings, now: Settings) -> tuple[str, ...]:
    """The names of settings that differ from those at the start and cannot change while the engine runs."""
    changed = []
    for section in then.__struct_fields__:
        for name in getattr(then, section).__struct_fields__:
            key = f"{section}.{name}"
            differs = settings.value_of(then, key) != settings.value_of(now, key)
            if differs and not applies_at_once(key):
                changed.append(key)
    return tuple(changed)
