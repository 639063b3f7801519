"""Every decoder of bytes from outside, ready to be fuzzed: inputs to begin with, and a check of what it reads.

A decoder may read bytes or refuse them in its documented way; anything else is a finding. Left out: what libraries decode for us
(safetensors, tokenizers, Jinja, hivemind's protobuf, SQLite and so the engine's history), and the list of newer versions, because
only its envelope is read before the signature is verified.

The names of decoders are recorded: a corpus file and the lines of the log carry them.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from waggle.core.errors import LabError

MODULES = {  # decoder -> the module with a function of its name
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
    "question_file": "tasks",
    "own_questions": "tasks",
    "graded_answer": "tasks",
    "settings": "settings",
    "command": "protocol",
    "recording": "protocol",
    "checkpoint": "policy",
    "stop_token": "policy",
    "configuration": "policy",
    "journal": "policy",
    "book": "book",
}
NAMES = tuple(MODULES)


@dataclass(frozen=True)
class Decoder:
    """`seeds` are inputs to begin with. `check` raises for a finding; bytes that are read or properly refused are none."""

    seeds: tuple[bytes, ...]
    check: Callable[[bytes], None]


def load_decoder(name: str, scratch: Path) -> Decoder:
    """Load a decoder by its name, without importing the others; it may write files into `scratch`. Raises LabError."""
    if name not in MODULES:
        raise LabError(f"There is no decoder {name}.", f"Choose all, or one of: {', '.join(NAMES)}.")
    module = importlib.import_module(f"{__name__}.{MODULES[name]}")
    decoder: Decoder = getattr(module, name)(scratch)
    return decoder


def read_corpus(folder: Path, name: str) -> tuple[bytes, ...]:
    """Read the inputs of a decoder from its file in `folder`, each a line in hex; empty without a file."""
    file = folder / f"{name}.hex"
    return tuple(map(bytes.fromhex, file.read_text(encoding="ascii").split())) if file.exists() else ()
