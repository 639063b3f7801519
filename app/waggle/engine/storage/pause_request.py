"""What a person asked for beyond the rules, kept in a file: a pause ends as it was said to, whatever ends the engine before."""

import logging
from pathlib import Path

import msgspec

from waggle.core import paths
from waggle.core.errors import UNREADABLE
from waggle.protocol.schedule import Wishes

log = logging.getLogger(__name__)

MAX_BYTES = 1000  # of the file: a few moments


class PauseRequest:
    """One for the life of the process; without a file it lasts no longer."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self.wishes = _read(file) if file else Wishes()

    def keep(self, wishes: Wishes) -> None:
        """This holds from now on, in place of what was asked before."""
        if wishes == self.wishes:
            return
        self.wishes = wishes
        if self._file is None:
            return
        try:
            if wishes == Wishes():
                self._file.unlink(missing_ok=True)
            else:
                paths.write_atomically(self._file, msgspec.json.encode(wishes))
        except OSError as error:  # a full disk: others report it, and the request holds for as long as this process lives
            log.debug("the pause request is not stored: %s", error)


def _read(file: Path) -> Wishes:
    try:
        with file.open("rb") as written:
            return msgspec.json.decode(written.read(MAX_BYTES), type=Wishes)
    except (OSError, *UNREADABLE):  # nothing was asked for, or it is damaged
        return Wishes()
