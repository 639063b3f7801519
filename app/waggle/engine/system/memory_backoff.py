"""Memory backoff: after the engine ran out of memory it works in smaller parts.

The person is told, also when the system killed the engine for it.

Each model has parts of its own, and after a day of work that memory sufficed for, the next start tries larger ones again. Only
Linux counts such kills; elsewhere an engine that was killed is started again as it was.
"""

import logging
import re
from pathlib import Path
from typing import Annotated

import msgspec

from waggle.core import paths
from waggle.core.errors import UNREADABLE

log = logging.getLogger(__name__)

MOST = 4  # halvings: a sixteenth of what is usual
MOST_PARTS = 1 << MOST
CALM = 86_400.0  # seconds of work, after which one of them is taken back
NOTED = 3600.0  # seconds of it that not even a kill takes away
BOOT, KILLS = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/vmstat")


class ModelBackoff(msgspec.Struct, frozen=True, kw_only=True):
    """What one model is held to, and for how many seconds of work that was enough."""

    halvings: Annotated[int, msgspec.Meta(ge=0, le=MOST)] = 0
    calm: float = 0.0


class StoredBackoff(msgspec.Struct, frozen=True, kw_only=True):
    """What outlives the process. `kills` is the system's count at our start; empty once the engine was told to leave."""

    model: str = ""  # the one in use
    fitted: Annotated[int, msgspec.Meta(ge=1, le=MOST_PARTS)] = 1  # parts into which its work is divided without any halving
    by_model: dict[str, ModelBackoff] = msgspec.field(name="held", default_factory=dict)
    kills: str = ""


class MemoryBackoff:
    """Made at the engine's start. `was_killed` says whether the last run was ended for want of memory, `smaller` whether this
    one therefore works in smaller parts."""

    def __init__(self, home: paths.Home, kills: str | None = None) -> None:
        self._path = home.root / "frugality.json"
        self._allowed = 0.0
        self._kills = system_kills() if kills is None else kills
        stored = _read(self._path)
        self._model, self._fitted, self._by_model = stored.model, stored.fitted, dict(stored.by_model)
        self.was_killed = grew(stored.kills, self._kills)
        self.smaller = self.was_killed and self.more()
        if not self.smaller:
            self._write()

    @property
    def parts(self) -> int:
        """Into how many parts work is divided that is usually done at once."""
        return min(MOST_PARTS, self._fitted << self._now.halvings)

    @property
    def _now(self) -> ModelBackoff:
        return self._by_model.get(self._model, ModelBackoff())

    def begin(self, model: str) -> None:
        """From now on it is this model that needs memory; after a day of work for which there was enough, in larger parts."""
        if model != self._model:
            self._model, self._fitted = model, 1
        if self._now.halvings and self._now.calm >= CALM:
            self._by_model[model] = ModelBackoff(halvings=self._now.halvings - 1)
        self._write()

    def divided(self, fitted: int) -> int:
        """Into how many parts the model's work is divided, of which so many let it fit as it was measured."""
        self._fitted = fitted
        self._write()
        return self.parts

    def more(self) -> bool:
        """Work in parts half as large from now on; False where they are as small as it makes sense."""
        if self.parts >= MOST_PARTS:
            return False
        self._by_model[self._model] = ModelBackoff(halvings=self._now.halvings + 1)
        log.info("memory is short: work is divided into %d parts", self.parts)
        self._write()
        return True

    def sufficed(self, seconds: float) -> None:
        """So long memory was enough while there was work."""
        now = self._now
        if now.halvings:
            calm = now.calm + seconds
            self._by_model[self._model] = ModelBackoff(halvings=now.halvings, calm=calm)
            if calm // NOTED > now.calm // NOTED:
                self._write()

    def allow(self, gigabytes: float) -> tuple[str, ...]:
        """So much is allowed now (0: what is needed): where that is more than before, the next start takes usual parts again."""
        before, self._allowed = self._allowed, gigabytes
        if before and (not gigabytes or gigabytes > before):
            self._by_model.clear()
            self._write()
        return ()

    def end(self) -> None:
        """The engine was told to leave: whatever ends it now, it is not for want of memory."""
        self._kills = ""
        self._write()

    def _write(self) -> None:
        by_model = {model: backoff for model, backoff in self._by_model.items() if backoff.halvings}
        try:
            paths.write_atomically(
                self._path,
                msgspec.json.encode(StoredBackoff(model=self._model, fitted=self._fitted, by_model=by_model, kills=self._kills)),
            )
        except OSError:  # a full disk: others say so, and this is only a memory of how much there is
            return


def _read(path: Path) -> StoredBackoff:
    try:
        return msgspec.json.decode(path.read_bytes(), type=StoredBackoff)
    except (OSError, *UNREADABLE):  # none yet, or damaged
        return StoredBackoff()


def system_kills() -> str:
    """How often this system has killed for want of memory since it started: `boot:count`; empty where it does not tell."""
    try:
        match = re.search(r"^oom_kill (\d+)$", KILLS.read_text(), re.MULTILINE)
        return f"{BOOT.read_text().strip()}:{match.group(1)}" if match else ""
    except OSError:
        return ""


def grew(then: str, now: str) -> bool:
    """Whether there were such kills in between, in one run of the system."""
    before, _, few = then.rpartition(":")
    after, _, many = now.rpartition(":")
    return bool(before) and before == after and int(many) > int(few)
