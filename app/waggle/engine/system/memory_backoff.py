"""Memory backoff: after the engine ran out of memory, it works in smaller parts, with the same result.

Each model has its own number of parts. After a day of work without a shortage, the next start tries larger parts again. A kill
by the system's out-of-memory killer counts, too, but only Linux reports those.
"""

import logging
import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec

from waggle.core import damaged_file, paths
from waggle.core.errors import UNREADABLE

log = logging.getLogger(__name__)

MAX_HALVINGS = 4  # down to a sixteenth of the usual parts
MAX_PARTS = 1 << MAX_HALVINGS
RECOVERY_SECONDS = 86_400.0  # of work without a shortage, after which one halving is taken back
SAVE_EVERY_SECONDS = 3600.0  # of such work: the most that a kill forgets
BOOT, KILLS = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/vmstat")


class ModelBackoff(msgspec.Struct, frozen=True, kw_only=True):
    """One model's halvings, and the seconds of work without a shortage since the last one."""

    halvings: Annotated[int, msgspec.Meta(ge=0, le=MAX_HALVINGS)] = 0
    sufficient_seconds: float = msgspec.field(default=0.0, name="calm")


class StoredBackoff(msgspec.Struct, frozen=True, kw_only=True):
    """The file. `kills` is the system's count of kills when the engine started; empty after an orderly end."""

    model: str = ""  # in use
    fitted: Annotated[int, msgspec.Meta(ge=1, le=MAX_PARTS)] = 1  # parts without any halving
    by_model: dict[str, ModelBackoff] = msgspec.field(name="held", default_factory=dict)
    kills: str = ""


class MemoryBackoff:
    """Created at the engine's start. `was_killed`: the system killed the last run for its memory. `started_smaller`: this run
    works in smaller parts because of that."""

    def __init__(self, home: paths.Home, kills: str | None = None) -> None:
        self._path = home.root / "frugality.json"
        self._allowed = 0.0
        self._kills = system_kills() if kills is None else kills
        stored = _read(self._path)
        self._model, self._fitted, self._by_model = stored.model, stored.fitted, dict(stored.by_model)
        self.was_killed = was_killed_between(stored.kills, self._kills)
        self.started_smaller = self.was_killed and self.back_off()
        if not self.started_smaller:
            self._write()

    @property
    def parts(self) -> int:
        """The number of parts into which the model's work is divided."""
        return min(MAX_PARTS, self._fitted << self._now.halvings)

    @property
    def is_backed_off(self) -> bool:
        """Whether memory ran short, so that the parts are smaller than by measurement."""
        return self._now.halvings > 0

    @property
    def _now(self) -> ModelBackoff:
        return self._by_model.get(self._model, ModelBackoff())

    def use_model(self, model: str) -> None:
        """Switch to this model; after a day of work without a shortage, to larger parts of it."""
        if model != self._model:
            self._model, self._fitted = model, 1
        if self._now.halvings and self._now.sufficient_seconds >= RECOVERY_SECONDS:
            self._by_model[model] = ModelBackoff(halvings=self._now.halvings - 1)
        self._write()

    def parts_for(self, fitted: int) -> int:
        """The number of parts for a model that fits in `fitted` parts by measurement."""
        self._fitted = fitted
        self._write()
        return self.parts

    def back_off(self) -> bool:
        """Halve the parts; return False if they are as small as makes sense."""
        if self.parts >= MAX_PARTS:
            return False
        self._by_model[self._model] = ModelBackoff(halvings=self._now.halvings + 1)
        log.info("memory is short: work is divided into %d parts", self.parts)
        self._write()
        return True

    def record_success(self, seconds: float) -> None:
        """Count seconds of work without a shortage."""
        now = self._now
        if now.halvings:
            sufficient_seconds = now.sufficient_seconds + seconds
            self._by_model[self._model] = ModelBackoff(halvings=now.halvings, sufficient_seconds=sufficient_seconds)
            if sufficient_seconds // SAVE_EVERY_SECONDS > now.sufficient_seconds // SAVE_EVERY_SECONDS:
                self._write()

    def apply_limit(self, gigabytes: float) -> tuple[str, ...]:
        """Note the memory that the person allows (0: no limit). After an increase, the next start takes the usual parts again."""
        before, self._allowed = self._allowed, gigabytes
        if before and (not gigabytes or gigabytes > before):
            self._by_model.clear()
            self._write()
        return ()

    def mark_orderly_exit(self) -> None:
        """Note that the engine was asked to end: a kill from now on does not mean a shortage of memory."""
        self._kills = ""
        self._write()

    def _write(self) -> None:
        by_model = {model: backoff for model, backoff in self._by_model.items() if backoff.halvings}
        try:
            paths.write_atomically(
                self._path,
                msgspec.json.encode(StoredBackoff(model=self._model, fitted=self._fitted, by_model=by_model, kills=self._kills)),
            )
        except OSError:  # a full disk: others report it, and the next start measures memory anyway
            return


def _read(path: Path) -> StoredBackoff:
    try:
        return msgspec.json.decode(path.read_bytes(), type=StoredBackoff)
    except OSError:  # no file yet
        return StoredBackoff()
    except UNREADABLE:  # it is measured again
        with suppress(OSError):
            damaged_file.set_aside(path)
        return StoredBackoff()


def system_kills() -> str:
    """The out-of-memory kills since the system booted, as `boot id:count`; empty where the system does not tell."""
    try:
        match = re.search(r"^oom_kill (\d+)$", KILLS.read_text(), re.MULTILINE)
        return f"{BOOT.read_text().strip()}:{match.group(1)}" if match else ""
    except OSError:
        return ""


def was_killed_between(then: str, now: str) -> bool:
    """Whether the system killed for memory between two results of `system_kills`, within one boot."""
    before, _, few = then.rpartition(":")
    after, _, many = now.rpartition(":")
    return bool(before) and before == after and int(many) > int(few)
