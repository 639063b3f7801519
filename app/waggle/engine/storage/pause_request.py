"""The pause request: a person's pause or "contribute anyway", stored in a file, so that it outlives the engine."""

import logging
from pathlib import Path

import msgspec

from waggle.core import damaged_file, paths
from waggle.core.errors import UNREADABLE
from waggle.core.system import file_moves
from waggle.protocol.schedule import Wishes

log = logging.getLogger(__name__)

MAX_BYTES = 1000  # of the file, which has a few timestamps


class PauseRequest:
    """The wishes in force. Without a file they last as long as the process."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self.aside: Path | None = None  # where the file lies now, if it could not be read
        self.wishes = self._read(file) if file else Wishes()

    def save(self, wishes: Wishes) -> None:
        """Replace the wishes in force."""
        if wishes == self.wishes:
            return
        self.wishes = wishes
        if self._file is None:
            return
        try:
            if wishes == Wishes():
                file_moves.unlink(self._file, missing_ok=True)
            else:
                paths.write_atomically(self._file, msgspec.json.encode(wishes))
        except OSError as error:  # a full disk: others report it, and the wishes hold as long as this process lives
            log.debug("the pause request is not stored: %s", error)

    def _read(self, file: Path) -> Wishes:
        """The wishes in the file. A damaged one may have been a pause, so the engine is paused until somebody resumes it."""
        try:
            with file.open("rb") as written:
                return msgspec.json.decode(written.read(MAX_BYTES), type=Wishes)
        except OSError:  # no request
            return Wishes()
        except UNREADABLE:
            paused = Wishes(paused=True)
        try:
            self.aside = damaged_file.keep_copy(file)
            paths.write_atomically(file, msgspec.json.encode(paused))
        except OSError as error:
            log.debug("the damaged pause request cannot be replaced: %s", error)
        return paused
