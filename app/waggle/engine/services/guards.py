"""Publishes which guards act, once they have acted for a minute: none of them works in silence."""

import time
from collections.abc import Callable

from waggle.core.message import Message
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.protocol.events_guards import Guard, GuardName, GuardsChanged
from waggle.protocol.state import State

SILENT_S = 60.0  # what is over sooner needs no words
GB = 1e9
QUIET_S = 60.0  # after which a guard that acts now and then counts as ended


class Guards:
    """Belongs to the engine's loop."""

    def __init__(self, publisher: EventPublisher, clock: Callable[[], float] = time.monotonic) -> None:
        self._publisher, self._clock = publisher, clock
        self._first: dict[GuardName, float] = {}  # since when it acts, and when it acted last (monotonic)
        self._last: dict[GuardName, float] = {}
        self._acting: dict[GuardName, Guard] = {}
        self._shared = True

    def observe(
        self, *, parts: int, limit_kb: int, has_gap: bool, disk_gb: float = 0.0, unmet_bytes: int = 0, is_away: bool = False
    ) -> None:
        """Look at what may hold something back. Call it every few seconds.

        `parts`: into how many the work is divided because memory ran short (1: it is not). `limit_kb`: the limit of traffic, if
        something had to wait for it just now, else 0. `has_gap`: the disk does not take the record of events. `disk_gb`: the
        limit of the disk (0: none). `unmet_bytes`: what stayed on it when nothing more could go, if that was above the limit.
        `is_away`: the network process ended and has not started again.
        """
        before = dict(self._acting)
        self._note(
            "memory",
            parts > 1,
            Message("Memory ran short, so the work is done in %1 parts, with the same result.", parts),
            Message("After a day of work without a shortage, the next start tries larger parts. Closing other programs helps."),
        )
        self._note(
            "traffic",
            limit_kb > 0,
            Message("The limit of %1 kB/s makes answers of peers and your own wait.", limit_kb),
            Message("Raise it, or remove it, in Settings."),
        )
        self._note(
            "record",
            has_gap,
            Message("The disk does not take the record of events."),
            Message("Make room on the disk: what happens until then is missing in the record."),
        )
        self._note(
            "disk",
            0 < disk_gb * GB < unmet_bytes,
            Message(
                "Models and saved states take %1 GB, above the limit of %2 GB: what is left is needed.",
                f"{unmet_bytes / GB:.3g}",
                f"{disk_gb:g}",
            ),
            Message("Let Waggle use more of the disk in Settings, or choose a smaller model."),
        )
        self._note(
            "network",
            is_away,
            Message(
                "The network process does not keep running: its next start waits for up to a minute. Training continues alone."
            ),
            Message("This ends by itself once it keeps running. The log says why it ended: waggle log."),
        )
        self._note("sharing", self._nothing_shared(self._publisher.state),
                   Message("None of your last answers could be shared: their size or a character in them may not travel."),
                   Message("Shorter answers can travel: lower the longest answer in Settings."))  # fmt: skip
        if self._acting != before:
            self._publisher.publish(GuardsChanged(guards=tuple(self._acting.values())))

    def _nothing_shared(self, state: State) -> bool:
        if state.stage in ("gather", "learn"):  # after sharing
            self._shared = state.shared > 0 or state.reach != "connected"
        return not self._shared

    def _note(self, name: GuardName, acts: bool, says: Message, ends: Message) -> None:
        now = self._clock()
        if acts:
            self._first.setdefault(name, now)
            self._last[name] = now
        elif name in self._last and now - self._last[name] >= (QUIET_S if name in ("traffic", "network") else 0.0):
            del self._first[name], self._last[name]
        if name not in self._first:
            self._acting.pop(name, None)
        elif acts and now - self._first[name] >= SILENT_S:
            known = self._acting.get(name)
            since = known.since if known else self._publisher.now() - (now - self._first[name])
            self._acting[name] = Guard(name=name, says=says, ends=ends, since=since)
