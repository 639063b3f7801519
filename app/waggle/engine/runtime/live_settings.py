"""The settings in force: changed while the engine runs, kept in the file, and applied at once where that can be."""

from collections.abc import Callable, Mapping
from pathlib import Path

from waggle.core import settings
from waggle.core.settings import Settings, Value
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.protocol import events

# All others, and the device, wait for the engine's next start.
APPLIED_AT_ONCE = ("when.", "window.", "computer.", "swarm.leaderboard", "swarm.my_answers")
APPLIED_AT_RESTART = ("computer.device",)


class LiveSettings:
    """`applied` is called with the settings after each change, and names those that could not be applied at once."""

    def __init__(self, path: Path, overrides: tuple[str, ...], publisher: EventPublisher) -> None:
        """Read them; raises SettingsError."""
        self._path, self._overrides, self._publisher = path, overrides, publisher
        self.now = self._at_start = settings.read(path, overrides)
        self.applied: list[Callable[[Settings], tuple[str, ...]]] = []

    def begin(self) -> Settings:
        """The settings that something starts with; nobody else hears of changes any more."""
        self.applied.clear()
        self._at_start = self.now
        self._tell()
        return self.now

    def apply_to(self, *applied: Callable[[Settings], tuple[str, ...]]) -> None:
        """Call these after each change, and now: what was changed while they came to be holds for them, too."""
        self.applied += applied
        if refused := tuple(key for apply in applied for key in apply(self.now)):
            self._tell(refused)

    def may_share(self) -> bool:
        """Whether a person's own answers may leave this computer."""
        return self.now.swarm.my_answers == "yes"

    def change(self, values: Mapping[str, Value]) -> Callable[[], None]:
        """All of them or none; raises SettingsError. What the command line said of these settings holds no more.

        Calling what is returned makes them what they were, in the file and for this run.
        """
        overruled = tuple(override for override in self._overrides if override.partition("=")[0].strip() in values)
        before = settings.stored_values(self._path, values)
        self._set(values, tuple(override for override in self._overrides if override not in overruled))
        return lambda: self._set(before, (*self._overrides, *overruled))

    def _set(self, values: Mapping[str, Value], overrides: tuple[str, ...]) -> None:
        self.now, self._overrides = settings.change(self._path, values, overrides), overrides
        self._tell(tuple(key for apply in self.applied for key in apply(self.now)))

    def _tell(self, refused: tuple[str, ...] = ()) -> None:
        later = (*changed_for_restart(self._at_start, self.now), *refused)
        self._publisher.tell(events.SettingsChanged(settings=self.now, after_restart=later))


def changed_for_restart(then: Settings, now: Settings) -> tuple[str, ...]:
    """The settings that differ from those the engine started with and cannot change while it runs."""
    changed = []
    for section in then.__struct_fields__:
        for name in getattr(then, section).__struct_fields__:
            key = f"{section}.{name}"
            differs = settings.value_of(then, key) != settings.value_of(now, key)
            if differs and (key in APPLIED_AT_RESTART or not key.startswith(APPLIED_AT_ONCE)):
                changed.append(key)
    return tuple(changed)
