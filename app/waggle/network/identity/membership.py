"""Membership: who may take part in a swarm. In a public swarm every node; in a private one the holders of its key.

The invites of a private swarm carry the key. A holder signs a certificate for itself (charter, peer id, expiry) and shows it with
announcements, with pulls, and as a gateway. An invite cannot be revoked: to exclude a member, the others begin a new charter. The
directory is not secret; only the texts are.
"""

import os
import struct
import time
from collections.abc import Callable
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from waggle.core import paths
from waggle.core.ed25519 import is_public_key
from waggle.core.errors import SwarmError
from waggle.core.message import Message
from waggle.core.system.os_faults import fault_of
from waggle.network.identity import member_name
from waggle.tasks.charter import Charter

DOMAIN = b"waggle/admission/1\0"
KEY_BYTES = 32
CERTIFICATE_BYTES = 72  # expiry (8) and signature (64)
LIFETIME_S = 86_400.0
MAX_LIFETIME_S = 2 * LIFETIME_S  # accepted: clocks differ, and certificates must end
ASK_FOR_INVITE = "Ask a member for an invite: its link carries the key."

_EXPIRY = struct.Struct(">Q")  # unix seconds


class Membership:
    """Makes the certificates of `peer_id` and checks those of peers. Without a key it only checks, as a seed does."""

    def __init__(self, charter: Charter, peer_id: bytes, key: bytes = b"", clock: Callable[[], float] = time.time) -> None:
        self._public_key = bytes.fromhex(charter.admission_key)
        self._digest = charter.digest
        self._peer_id = peer_id
        self._key = key
        self._clock = clock
        self._own, self._renewed_at = b"", 0.0

    def certificate(self) -> bytes:
        """A certificate that is valid for at least half a day; b"" in a public swarm, and without a key."""
        if not self._public_key or not self._key:
            return b""
        now = self._clock()
        if not self._renewed_at <= now < self._renewed_at + LIFETIME_S / 2:
            self._own, self._renewed_at = issue_certificate(self._key, self._digest, self._peer_id, now + LIFETIME_S), now
        return self._own

    def sealed_name(self, name: str) -> bytes:
        """The name that this node chose, as its announcements carry it; b"" in a public swarm. Raises SwarmError."""
        return member_name.seal(name, self._key, self._digest, self._peer_id) if self._public_key else b""

    def member_name(self, peer_id: bytes, sealed: bytes) -> str:
        """The name that a peer chose; "" if it chose none, or this node cannot read it. Never raises."""
        return member_name.opened(sealed, self._key, self._digest, peer_id) if self._public_key else ""

    def admits(self, peer_id: bytes, certificate: bytes) -> bool:
        """Whether this peer may take part. Never raises: malformed input is no certificate."""
        if not self._public_key:
            return True
        if len(certificate) != CERTIFICATE_BYTES or not is_public_key(self._public_key):  # else everybody could certify
            return False
        (expires,) = _EXPIRY.unpack(certificate[:8])
        now = self._clock()
        if not now < expires <= now + MAX_LIFETIME_S:
            return False
        try:
            public = Ed25519PublicKey.from_public_bytes(self._public_key)
            public.verify(certificate[8:], _signed(self._digest, peer_id, certificate[:8]))
        except (InvalidSignature, ValueError):  # ValueError: the charter's key is malformed, so no certificate is valid
            return False
        return True


def new_key() -> bytes:
    """The key of a new private swarm; its charter contains `public_key_of` it."""
    return os.urandom(KEY_BYTES)


def public_key_of(key: bytes) -> str:
    """The public key in hex, as the charter contains it."""
    return Ed25519PrivateKey.from_private_bytes(key).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()


def issue_certificate(key: bytes, charter: bytes, peer_id: bytes, expires: float) -> bytes:
    """A certificate for one peer, valid until unix time `expires`."""
    until = _EXPIRY.pack(int(expires))
    return until + Ed25519PrivateKey.from_private_bytes(key).sign(_signed(charter, peer_id, until))


def require_key(charter: Charter, key: bytes) -> None:
    """Raise SwarmError if this is not the key of the swarm, and the swarm is private."""
    if not charter.is_private:
        return
    if not key:
        raise SwarmError(Message("%1 is a private swarm, and its key is not here.", charter.name), ASK_FOR_INVITE)
    if len(key) != KEY_BYTES or public_key_of(key) != charter.admission_key:
        raise SwarmError(Message("The key that is here does not open %1.", charter.name), ASK_FOR_INVITE)


def write_key(path: Path, key: bytes) -> None:
    """Write a key to a file that only this user can read; raises OSError."""
    paths.write_atomically(path, key, mode=0o600)


def read_key(path: Path) -> bytes:
    """The key in a file; b"" if there is no file. Raises SwarmError if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(KEY_BYTES + 1)
    except FileNotFoundError:
        return b""
    except OSError as error:
        fault = fault_of(error)
        raise SwarmError(
            Message("The key %1 of a private swarm cannot be opened: %2.", path, fault.reason), fault.advice
        ) from error


def _signed(charter: bytes, peer_id: bytes, until: bytes) -> bytes:
    return DOMAIN + charter + peer_id + until
