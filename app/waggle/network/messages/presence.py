"""A signed statement that a node with this identity runs: which process of it, and when.

Nodes leave their statements with connected peers. Whoever gets back a statement of another process that ran after its own start
knows that the identity is used twice; nobody else can sign one.
"""

import hashlib
import os
from dataclasses import dataclass

from waggle.core.errors import BadRecord
from waggle.network.identity import keys
from waggle.network.identity.keys import SIGNATURE_BYTES, Identity
from waggle.network.messages.faults import Fault

DOMAIN = b"waggle/presence/1\0"
HOME_DOMAIN = b"waggle/presence/home/1\0"
PROCESS_BYTES, HOME_BYTES, TIME_BYTES = 8, 4, 8
BYTES = PROCESS_BYTES + TIME_BYTES + SIGNATURE_BYTES


@dataclass(frozen=True)
class Presence:
    """`process` names a process (see `new_process`), `at` is the unix milliseconds of its clock."""

    process: bytes
    at: int


def new_process(home_salt: bytes = b"") -> bytes:
    """A name for this process: half of it is the same for all runs of a home, as far as it has a salt, the rest is random."""
    home = hashlib.sha256(HOME_DOMAIN + home_salt).digest()[:HOME_BYTES] if home_salt else os.urandom(HOME_BYTES)
    return home + os.urandom(PROCESS_BYTES - HOME_BYTES)


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
