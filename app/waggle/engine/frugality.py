"""Frugality: after the engine ran out of memory it works in smaller parts, and says so, also when the system killed it for that.

Only Linux counts such kills; elsewhere an engine that was killed is started again as it was.
"""

import re
from pathlib import Path
from typing import Annotated

import msgspec

from waggle import paths
from waggle.errors import UNREADABLE

MOST = 4  # halvings: a sixteenth of what is usual
BOOT, KILLS = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/vmstat")


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What outlives the process. `kills` is the system's count at our start; empty after an orderly end."""

    halvings: Annotated[int, msgspec.Meta(ge=0, le=MOST)] = 0
    kills: str = ""


class Frugality:
    """Made at the engine's start. `was_killed` says whether the last run was ended for want of memory."""

    def __init__(self, home: paths.Home, kills: str | None = None) -> None:
        self._path = home.root / "frugality.json"
        self._allowed = 0.0
        self._kills = system_kills() if kills is None else kills
        kept = _read(self._path)
        self.was_killed = grew(kept.kills, self._kills)
        self.halvings = min(MOST, kept.halvings + self.was_killed)
        self._write(self._kills)

    @property
    def parts(self) -> int:
        """Into how many parts work is divided that is usually done at once."""
        return 1 << self.halvings

    def more(self) -> bool:
        """Work in parts half as large from now on; False where they are as small as it makes sense."""
        if self.halvings >= MOST:
            return False
        self.halvings += 1
        self._write(self._kills)
        return True

    def allow(self, gigabytes: float) -> tuple[str, ...]:
        """So much is allowed now (0: what is needed): where that is more than before, the next start takes usual parts again."""
        before, self._allowed = self._allowed, gigabytes
        if before and (not gigabytes or gigabytes > before):
            self.halvings = 0
            self._write(self._kills)
        return ()

    def end(self) -> None:
        """This end is an orderly one."""
        self._write("")

    def _write(self, kills: str) -> None:
        try:
            paths.put(self._path, msgspec.json.encode(Kept(halvings=self.halvings, kills=kills)))
        except OSError:  # a full disk: others say so, and this is only a memory of how much there is
            return


def _read(path: Path) -> Kept:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Kept)
    except (OSError, *UNREADABLE):  # none yet, or damaged
        return Kept()


def system_kills() -> str:
    """How often this system has killed for want of memory since it started: `boot:count`; empty where it does not tell."""
    try:
        found = re.search(r"^oom_kill (\d+)$", KILLS.read_text(), re.MULTILINE)
        return f"{BOOT.read_text().strip()}:{found.group(1)}" if found else ""
    except OSError:
        return ""


def grew(then: str, now: str) -> bool:
    """Whether there were such kills in between, in one run of the system."""
    before, _, few = then.rpartition(":")
    after, _, many = now.rpartition(":")
    return bool(before) and before == after and int(many) > int(few)
