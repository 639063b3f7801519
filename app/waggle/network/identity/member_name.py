"""The name that a member of a private swarm chose for itself, sealed with the swarm's key.

Announcements carry it. Who holds no invite can neither read a name nor write one, and no member can move that of another one to
its own peer id. Two members may choose the same name, so a fingerprint of the key stands beside it wherever it is shown.
"""

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from waggle.core.errors import SwarmError
from waggle.core.message import Message
from waggle.core.text.legible_name import legible

LONGEST = 24  # characters
MOST_BYTES = 48  # of them in UTF-8
NONCE_BYTES, TAG_BYTES = 12, 16
SEALED_BYTES = NONCE_BYTES + MOST_BYTES + TAG_BYTES
DOMAIN = b"waggle/member-name/1"


def checked(name: str) -> str:
    """The name as others see it; "" for none. Raises SwarmError for one that is too long, or has signs that are not shown."""
    words = " ".join(name.split())
    if legible(words) != words or not words.isprintable():
        raise SwarmError("This name has characters that cannot be shown.", "Use letters, numbers and spaces.")
    if len(words) > LONGEST or len(words.encode("utf-8", "replace")) > MOST_BYTES:
        raise SwarmError("This name is too long.", Message("It may have %1 characters; fewer in some scripts.", LONGEST))
    return words


def seal(name: str, key: bytes, charter: bytes, peer_id: bytes) -> bytes:
    """The name of `peer_id` for the members of this swarm (32 bytes of its charter's hash); b"" without a name or a key."""
    if not name or not key:
        return b""
    nonce = os.urandom(NONCE_BYTES)
    return nonce + _cipher(key).encrypt(nonce, checked(name).encode(), charter + peer_id)


def opened(sealed: bytes, key: bytes, charter: bytes, peer_id: bytes) -> str:
    """The name that `peer_id` sealed; "" if there is none, or none that may be shown. Never raises."""
    if not key or not NONCE_BYTES + TAG_BYTES < len(sealed) <= SEALED_BYTES:
        return ""
    try:
        name = _cipher(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], charter + peer_id).decode()
        return name if checked(name) == name else ""
    except (InvalidTag, UnicodeDecodeError, SwarmError):
        return ""


def _cipher(key: bytes) -> ChaCha20Poly1305:
    return ChaCha20Poly1305(HKDF(SHA256(), 32, salt=None, info=DOMAIN).derive(key))
