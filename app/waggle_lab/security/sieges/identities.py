"""The identities of the nodes of a siege: the same for the same seed, so that a node draws the same questions."""

import hashlib
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from waggle.network.identity import keys
from waggle.network.identity.keys import FILE_PREFIX, Identity


def identity_of(path: Path, seed: int, i: int) -> Identity:
    """The identity of node i, written to `path`."""
    return with_key(path, hashlib.sha256(b"waggle/siege/1|%d|%d" % (seed, i)).digest())


def with_key(path: Path, private: bytes) -> Identity:
    """The identity of 32 private bytes, written to `path`."""
    key = Ed25519PrivateKey.from_private_bytes(private)
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    path.write_bytes(FILE_PREFIX + key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption()) + public)
    path.chmod(0o400)
    return keys.load_or_create(path)
