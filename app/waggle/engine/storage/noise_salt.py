"""The salt of this node's random streams: the same after a restart here, another one in a copy of the home.

Copies share the identity, from which the streams were made alone before: they drew the same questions and wrote the same answers.
The salt is stored with the place that it was drawn for, and belongs to that place only. Where two computers cannot be told apart,
as after a virtual machine was cloned, `forget` is called once peers saw the other.
"""

import hashlib
import logging
import os
import platform
import uuid
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil

from waggle.core import paths
from waggle.core.errors import UNREADABLE
from waggle.core.system import file_moves

log = logging.getLogger(__name__)

NAME = "streams.json"  # of its home
BYTES, MOST_BYTES = 16, 4096
MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))


class _Stored(msgspec.Struct, frozen=True, kw_only=True):
    salt: bytes
    place: str


def salt_of(home: paths.Home) -> bytes:
    """This home's salt, drawn at the first start in this place. If it cannot be stored, it is another one at the next start."""
    file, here = home.root / NAME, _place(home)
    with suppress(OSError, *UNREADABLE):  # the first start here, or a damaged file
        with file.open("rb") as opened:
            stored = msgspec.json.decode(opened.read(MOST_BYTES), type=_Stored)
        if stored.place == here and len(stored.salt) == BYTES:
            return stored.salt
        log.info("this home was copied or moved: its random streams begin anew")
    salt = os.urandom(BYTES)
    with suppress(OSError):  # a full disk
        paths.write_atomically(file, msgspec.json.encode(_Stored(salt=salt, place=here)), mode=0o600)
    return salt


def forget(home: paths.Home) -> None:
    """Draw another salt at the next start: another computer has this identity, and perhaps this salt."""
    with suppress(OSError):  # then both go on as before
        file_moves.unlink(home.root / NAME, missing_ok=True)


def _place(home: paths.Home) -> str:
    """Tells this folder on this computer from its copies."""
    with suppress(OSError):
        status = home.root.stat()
        parts = (platform.node(), _machine_id(), *_network_cards(), str(home.root.resolve()), f"{status.st_ino}")
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
    return ""


def _machine_id() -> str:
    for path in MACHINE_IDS:
        with suppress(OSError, UnicodeDecodeError):
            return path.read_text(encoding="ascii").strip()
    node = uuid.getnode()
    return "" if node >> 40 & 1 else f"{node:x}"  # a random number where there is no network card


def _network_cards() -> list[str]:
    """The addresses that makers gave to the network cards, which a cloned machine does not have; those of containers change."""
    with suppress(OSError, psutil.Error):
        addresses = {
            address.address.lower().replace("-", ":")
            for listed in psutil.net_if_addrs().values()
            for address in listed
            if address.family == psutil.AF_LINK and address.address.count(address.address[2:3] or ":") == 5
        }
        return sorted(mac for mac in addresses if not int(mac[:2], 16) & 2 and mac != "00:00:00:00:00:00")
    return []
