"""The pieces of a charter's files of questions on this computer. Each is a file that is named by its SHA-256."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from waggle.core import paths
from waggle.core.errors import SwarmError
from waggle.core.message import Message
from waggle.core.system import file_moves
from waggle.core.system.os_faults import fault_of
from waggle.tasks.charter import Charter
from waggle.tasks.question_file.description import PIECE_BYTES
from waggle.tasks.question_file.packed import piece_hash

SUFFIX = ".piece"


class PieceStore:
    """The pieces that one charter names, in a folder of pieces of all charters. Without a folder there are none.

    Every piece is compared with its hash when it is read: a damaged one counts as missing. Thread-safe.
    """

    def __init__(self, folder: Path | None, charter: Charter) -> None:
        self._folder = folder
        self._files = {each.dataset: each.file for each in charter.specialties if each.file is not msgspec.UNSET}
        self._sizes = {
            digest: file.piece_bytes(place) for file in self._files.values() for place, digest in enumerate(file.pieces)
        }

    def names(self, sha256: bytes) -> bool:
        """Whether the charter names a piece with this hash."""
        return sha256.hex() in self._sizes

    def get(self, sha256: bytes) -> bytes:
        """The piece with this hash; empty if the charter does not name it, or it is not here. Reads a file."""
        digest = sha256.hex()
        return self._read(digest) if digest in self._sizes else b""

    def missing(self) -> tuple[bytes, ...]:
        """The hashes of all pieces that are not here, in the charter's order. Reads all of them."""
        return tuple(bytes.fromhex(digest) for digest in self._sizes if not self._read(digest))

    def add(self, piece: bytes) -> bool:
        """Store a piece; False if the charter does not name it. Raises SwarmError if the disk refuses."""
        digest = piece_hash(piece)
        if self._folder is None or self._sizes.get(digest) != len(piece):
            return False
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            paths.write_atomically(self._folder / f"{digest}{SUFFIX}", piece)
        except OSError as error:
            raise SwarmError(
                Message("The questions cannot be stored: %1.", fault_of(error).reason), fault_of(error).advice
            ) from error
        return True

    def files(self) -> Mapping[str, tuple[bytes, ...]]:
        """The pieces of every file that is complete here, by its dataset, as the verifier needs them."""
        read = {dataset: tuple(map(self._read, file.pieces)) for dataset, file in self._files.items()}
        return {dataset: pieces for dataset, pieces in read.items() if all(pieces)}

    def remove(self, others: Iterable[Charter]) -> None:
        """Remove the pieces that none of the other charters names."""
        if self._folder is None:
            return
        needed = {digest for charter in others for digest in PieceStore(None, charter)._sizes}
        for digest in self._sizes.keys() - needed:
            with suppress(OSError):  # it stays until Waggle's data are removed
                file_moves.unlink(self._folder / f"{digest}{SUFFIX}", missing_ok=True)

    def _read(self, digest: str) -> bytes:
        if self._folder is None:
            return b""
        try:
            with (self._folder / f"{digest}{SUFFIX}").open("rb") as file:
                piece = file.read(PIECE_BYTES + 1)
        except OSError:  # not here, or not readable: it can be downloaded
            return b""
        return piece if piece_hash(piece) == digest else b""
