"""A backup of an identity: one text file that only its passphrase opens, and restoring from it without losing a key.

scrypt makes the encryption key from the passphrase. Name and peer id are readable in the file; they are authenticated, so a
change is noticed.
"""

import base64
import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from waggle.core import paths
from waggle.core.errors import IdentityError
from waggle.core.message import Message, in_turn
from waggle.core.peer_id import peer_id_of, text_of
from waggle.core.system import access_list, file_moves
from waggle.core.system.os_faults import fault_of
from waggle.core.text.person_text import decoded
from waggle.network.identity import keys
from waggle.network.identity.keys import Identity, name_of

SHORTEST = 8  # characters of a passphrase
MAX_BYTES = 4096
SALT, NONCE = 16, 12
COST = {"n": 1 << 15, "r": 8, "p": 1}  # scrypt: about 0.1 s and 32 MB for each guess
HEAD = "Waggle identity, encrypted with a passphrase (version 1)"
_FORM = re.compile(rf"{re.escape(HEAD)}\nname: ([^\n]{{1,60}})\npeer: ([0-9A-Za-z]{{1,64}})\n\n([0-9A-Za-z+/=\n]{{1,1000}})\n?")
COPY_AGAIN = "Take another copy of the backup, if there is one."


@dataclass(frozen=True)
class OpenedBackup:
    """The content of a backup: a key file, and its peer id."""

    content: bytes
    peer_id: bytes


def seal(who: Identity, passphrase: str) -> bytes:
    """The backup of a key file; raises IdentityError if the passphrase is too short, or the file is gone."""
    if len(passphrase) < SHORTEST:
        raise IdentityError(
            Message("A passphrase has at least %1 characters.", SHORTEST), "Four words that nobody would guess are good."
        )
    try:
        content = who.path.read_bytes()
    except OSError as error:
        raise keys.unopened(who.path, error) from error
    head = _head(name_of(who.peer_id), text_of(who.peer_id))
    salt, nonce = os.urandom(SALT), os.urandom(NONCE)
    sealed = ChaCha20Poly1305(_key(passphrase, salt)).encrypt(nonce, content, head.encode())
    return f"{head}\n{base64.encodebytes(salt + nonce + sealed).decode()}".encode()


def unseal(blob: bytes, passphrase: str) -> OpenedBackup:
    """Decrypt a backup; raises IdentityError for a wrong passphrase, and for a file that is no backup or was changed."""
    match = _FORM.fullmatch(decoded(blob[:MAX_BYTES], "replace"))
    if match is None:
        raise IdentityError("This is no backup of an identity.", "It begins with the words: Waggle identity.")
    try:
        peer_id = peer_id_of(match[2])
        packed = base64.b64decode(match[3], validate=False)
        salt, nonce, sealed = packed[:SALT], packed[SALT : SALT + NONCE], packed[SALT + NONCE :]
        content = ChaCha20Poly1305(_key(passphrase, salt)).decrypt(nonce, sealed, _head(match[1], match[2]).encode())
    except InvalidTag as error:
        raise IdentityError("This passphrase does not open the backup, or the backup was changed.", "Try again.") from error
    except ValueError as error:
        raise IdentityError("This backup is damaged.", COPY_AGAIN) from error
    if keys.identity_of(Path("backup"), content).peer_id != peer_id:
        raise IdentityError("This backup holds another key than it says.", COPY_AGAIN)
    return OpenedBackup(content, peer_id)


def write(path: Path, who: Identity, passphrase: str) -> None:
    """Write the backup and read it again, so that it is known to open; raises IdentityError."""
    blob = seal(who, passphrase)
    try:
        paths.write_new(path, blob)
        written = path.read_bytes()
    except FileExistsError as error:
        raise IdentityError(
            Message("There is something at %1 already.", path), "Choose another name: nothing is overwritten."
        ) from error
    except OSError as error:
        raise IdentityError(Message("%1 cannot be written: %2.", path, fault_of(error).reason), fault_of(error).advice) from error
    if unseal(written, passphrase).peer_id != who.peer_id:
        raise IdentityError("The backup that was written does not open.", "Choose another place.")


def read(path: Path, passphrase: str) -> OpenedBackup:
    """Decrypt the backup at a path; raises IdentityError."""
    try:
        with path.open("rb") as file:
            blob = file.read(MAX_BYTES)
    except OSError as error:
        raise IdentityError(Message("%1 cannot be opened: %2.", path, fault_of(error).reason), fault_of(error).advice) from error
    return unseal(blob, passphrase)


def restore_key_file(path: Path, content: bytes | None) -> Path | None:
    """Replace the key file, and return the path of the old one. Without content the next start makes a new key.

    Raises IdentityError; then the key file is unchanged.
    """
    beside = path.with_suffix(".new")
    aside = path.with_name(f"{path.stem}.{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}.{os.urandom(2).hex()}.key")
    try:
        if content is not None:
            file_moves.unlink(beside, missing_ok=True)
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400), "wb") as file:
                access_list.restrict(beside)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        had = path.exists()
        if had:
            _give_name(path, aside, as_well=content is not None)
        if content is not None:
            file_moves.replace(beside, path)
    except OSError as error:
        if path.exists():
            file_moves.unlink(aside, missing_ok=True)
        elif aside.exists():
            file_moves.rename(aside, path)
        raise IdentityError(
            Message("The key file cannot be replaced: %1.", fault_of(error).reason),
            in_turn(Message("Nothing was changed."), fault_of(error).advice),
        ) from error
    return aside if had else None


def _give_name(path: Path, other: Path, *, as_well: bool) -> None:
    """Give a key file another name. With `as_well` it keeps its own name too, so that a kill leaves no home without a key."""
    if as_well and os.name != "nt":  # Windows does not replace a read-only file
        with suppress(OSError):  # a file system without hard links
            os.link(path, other)
            return
    file_moves.rename(path, other)


def _head(name: str, peer: str) -> str:
    return f"{HEAD}\nname: {name}\npeer: {peer}\n"


def _key(passphrase: str, salt: bytes) -> bytes:
    return Scrypt(salt=salt, length=32, **COST).derive(passphrase.encode("utf-8", "surrogatepass"))
