"""Every decoder of bytes that are not our own, ready to be fuzzed: what it is begun with, and what must hold of what it reads.

A decoder may read bytes or refuse them in its documented way; anything else that happens is a finding. Left out: what libraries
decode for us (safetensors, tokenizers, Jinja, SQLite, hivemind's protobuf), the engine's history, which is SQLite,
and the list of newer versions, of which only the envelope is read before its signature.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from waggle.core.errors import LabError

ROOMS = {
    "announcement": "swarm",
    "record": "swarm",
    "sheet": "swarm",
    "greeting": "swarm",
    "guard": "swarm",
    "find_reply": "dht",
    "gateway": "swarm",
    "admission": "swarm",
    "address": "swarm",
    "invite": "swarm",
    "lan": "swarm",
    "swarm_book": "swarm_files",
    "backup": "swarm_files",
    "identity": "swarm_files",
    "known_peers": "swarm_files",
    "standings": "swarm_files",
    "marks": "swarm_files",
    "charter": "tasks",
    "reply": "tasks",
    "settings": "settings",
    "command": "protocol",
    "recording": "protocol",
    "checkpoint": "policy",
    "stop_token": "policy",
    "configuration": "policy",
    "journal": "policy",
    "book": "book",
}
NAMES = tuple(ROOMS)


@dataclass(frozen=True)
class Decoder:
    """`seeds` are inputs to begin with. `check` reads or refuses; whatever it raises is a finding, broken promises too."""

    seeds: tuple[bytes, ...]
    check: Callable[[bytes], None]


def decoder(name: str, scratch: Path) -> Decoder:
    """The decoder of that name, which may write files into `scratch`; raises LabError. Imports no room but its own."""
    if name not in ROOMS:
        raise LabError(f"There is no decoder {name}.", f"There are {', '.join(NAMES)}; or say all.")
    module = importlib.import_module(f"{__name__}.{ROOMS[name]}")
    made: Decoder = getattr(module, name)(scratch)
    return made


def kept(folder: Path, name: str) -> tuple[bytes, ...]:
    """The inputs for one decoder that are kept in a file of `folder`, a line in hex each."""
    file = folder / f"{name}.hex"
    return tuple(map(bytes.fromhex, file.read_text(encoding="ascii").split())) if file.exists() else ()
