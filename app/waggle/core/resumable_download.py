"""Downloads a file in as many requests as it takes: what has arrived is kept, and only the rest is requested."""

import logging
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    import httpx2

log = logging.getLogger(__name__)

PIECE = 1 << 18  # bytes; a kill loses at most so many
TRIES = 3  # in a row that bring no byte

# Makes one request with these additional headers. Raises for an error status.
Ask = Callable[[dict[str, str]], "AbstractContextManager[httpx2.Response]"]


def fetch(part: Path, size: int, ask: Ask, progress: Callable[[int], None]) -> None:
    """Download until `part` has `size` bytes, reporting its size to `progress`; repeat requests whose connection breaks.

    Raises what `ask` raises, httpx2.TransportError after TRIES requests in a row without a byte, and OSError. Stops soon after
    `size` if the server sends more. The caller must check whether it is the right file.
    """
    import httpx2

    failures = 0
    with part.open("ab") as written:
        while (before := written.tell()) < size:
            try:
                _append(written, size, ask, progress)
                break  # a complete answer that is too short: the caller will see that its hash is wrong
            except httpx2.TransportError as error:
                failures = 0 if written.tell() > before else failures + 1
                if failures == TRIES:
                    raise
                kind = type(error).__name__
                log.info("a download stopped at %d of %d bytes (%s); next try in %d s", written.tell(), size, kind, failures)
                time.sleep(failures)
        os.fsync(written.fileno())


def _append(written: IO[bytes], size: int, ask: Ask, progress: Callable[[int], None]) -> None:
    """Append one request's answer."""
    headers = {"Accept-Encoding": "identity"}
    if written.tell():
        headers["Range"] = f"bytes={written.tell()}-"
    with ask(headers) as response:
        if response.status_code != 206:  # the server ignores Range and sends the whole file
            written.seek(0)
            written.truncate()
        for piece in response.iter_bytes(PIECE):
            written.write(piece)
            written.flush()
            if written.tell() > size:
                return
            progress(written.tell())
