"""The identity of a node: an Ed25519 key in p2pd's file format, and the peer id, which contains the public key."""

import contextlib
import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from waggle.core.errors import IdentityError
from waggle.core.message import Message
from waggle.core.peer_id import PEER_ID_PREFIX, is_peer_id
from waggle.core.system import access_list, file_moves
from waggle.core.system.os_faults import fault_of
from waggle.network.identity.friendly_names import ADJECTIVES, CREATURES

SIGNATURE_BYTES = 64
FILE_BYTES = 68
FILE_PREFIX = b"\x08\x01\x12\x40"  # protobuf PrivateKey: type 1 (Ed25519), 64 bytes of data: seed, then public key
MOVE_AWAY = Message(
    "Restore it from a copy, or with `waggle identity restore` from a backup, or move it away: Waggle then makes a new identity, "
    "which peers will not know."
)


@dataclass(frozen=True)
class Identity:
    """A key and its file. p2pd reads the file itself."""

    path: Path
    peer_id: bytes  # 38 bytes
    key: Ed25519PrivateKey

    def sign(self, domain: bytes, message: bytes) -> bytes:
        """A 64-byte signature of domain | peer id | message. The domain makes a signature for one use invalid for another."""
        return self.key.sign(domain + self.peer_id + message)


def verify(peer_id: bytes, domain: bytes, message: bytes, signature: bytes) -> bool:
    """Whether the key in `peer_id` signed `message` in this domain. Never raises: malformed input is not signed."""
    if not is_peer_id(peer_id):
        return False
    try:
        public = Ed25519PublicKey.from_public_bytes(peer_id[len(PEER_ID_PREFIX) :])
        public.verify(signature, domain + peer_id + message)
    except (InvalidSignature, ValueError):  # ValueError: not a public key; both mean "not signed"
        return False
    return True


def load_or_create(path: Path) -> Identity:
    """Read the key file, or make one (mode 0400). Never overwrites a file; raises IdentityError."""
    try:
        return identity_of(path, path.read_bytes())
    except FileNotFoundError:
        return _create(path)
    except OSError as error:
        raise unopened(path, error) from error


def unopened(path: Path, error: OSError) -> IdentityError:
    """The error for a key file that cannot be opened."""
    return IdentityError(
        Message("The identity file %1 cannot be opened: %2.", path, fault_of(error).reason), fault_of(error).advice
    )


def name_of(peer_id: bytes) -> str:
    """The friendly name of a peer, such as "Brisk Otter". Many peers may share a name."""
    digest = hashlib.sha256(b"waggle/name/1\0" + peer_id).digest()
    first, second = (int.from_bytes(part, "big") for part in (digest[:8], digest[8:16]))
    return f"{ADJECTIVES[first % len(ADJECTIVES)]} {CREATURES[second % len(CREATURES)]}"


def _create(path: Path) -> Identity:
    key = Ed25519PrivateKey.generate()
    content = FILE_PREFIX + key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption()) + _public(key)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, name = tempfile.mkstemp(".new", f"{path.stem}.", path.parent)
        beside = Path(name)
        try:
            access_list.restrict(beside)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            _name(beside, path)
        finally:
            file_moves.unlink(beside, missing_ok=True)
        with contextlib.suppress(OSError):  # a file system without permissions
            path.chmod(0o400)
        return identity_of(path, path.read_bytes())
    except OSError as error:
        fault = fault_of(error)
        raise IdentityError(Message("The identity file %1 cannot be written: %2.", path, fault.reason), fault.advice) from error


def _name(beside: Path, path: Path) -> None:
    """Give a complete file its name unless another file has it, so that two starts at once use the same key."""
    try:
        os.link(beside, path)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        if not path.exists():
            file_moves.rename(beside, path)


def identity_of(path: Path, content: bytes) -> Identity:
    """The identity whose key file at `path` has this content; raises IdentityError."""
    if len(content) != FILE_BYTES or not content.startswith(FILE_PREFIX):
        raise IdentityError(Message("The identity file %1 is damaged.", path), MOVE_AWAY)
    seed, public = content[4:36], content[36:]
    key = Ed25519PrivateKey.from_private_bytes(seed)
    if _public(key) != public:
        raise IdentityError(Message("The identity file %1 is damaged: its two halves do not belong together.", path), MOVE_AWAY)
    return Identity(path=path, peer_id=PEER_ID_PREFIX + public, key=key)


def _public(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
