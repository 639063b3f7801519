"""A signed statement that a node with this identity runs: which process of it, and when.

Nodes leave their statements with connected peers. Whoever gets back a statement of another process that ran after its own start
knows that the identity is used twice; nobody else can sign one.
"""

import os
from dataclasses import dataclass

from waggle.core.errors import BadRecord
from waggle.network.identity import keys
from waggle.network.identity.keys import SIGNATURE_BYTES, Identity
from waggle.network.messages.faults import Fault

DOMAIN = b"waggle/presence/1\0"
PROCESS_BYTES, TIME_BYTES = 8, 8
BYTES = PROCESS_BYTES + TIME_BYTES + SIGNATURE_BYTES


@dataclass(frozen=True)
class Presence:
    """`process` is a random number of each process, `at` the unix milliseconds of its clock."""

    process: bytes
    at: int


def new_process() -> bytes:
    """A random name for this process. Copies of a home, and of a whole computer after a start, draw different ones."""
    return os.urandom(PROCESS_BYTES)


def write(who: Identity, process: bytes, at: float) -> bytes:
    """Our own statement; `at` in unix seconds."""
    stated = process + round(1000 * at).to_bytes(TIME_BYTES, "big")
    return stated + who.sign(DOMAIN, stated)


def read(blob: bytes, peer_id: bytes) -> Presence:
    """A statement that this peer signed. Raises BadRecord."""
    stated, signature = blob[:-SIGNATURE_BYTES], blob[-SIGNATURE_BYTES:]
    if len(blob) != BYTES or not keys.verify(peer_id, DOMAIN, stated, signature):
        raise BadRecord(Fault.FORGED_PRESENCE)
    return Presence(process=stated[:PROCESS_BYTES], at=int.from_bytes(stated[PROCESS_BYTES:], "big"))
