"""Fetches a file in as many requests as it takes: what has come stays, only the rest is asked for. Says where there is no way."""

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    import httpx2

PIECE = 1 << 18  # bytes: at most so much is lost by a kill
TRIES = 3  # in a row that brought not one byte

# One request with these headers too; raises for its status.
Ask = Callable[[dict[str, str]], "AbstractContextManager[httpx2.Response]"]


def require_usable_proxy(kind: Callable[[str, str], Exception]) -> None:
    """Raise an error of this kind where the system names a proxy that nobody here can go through: SOCKS, or none at all."""
    import httpx2

    try:
        httpx2.Client().close()
    except (ImportError, ValueError, httpx2.InvalidURL) as error:
        raise kind(
            "This computer's network proxy cannot be used.",
            "Waggle goes through web proxies (HTTP), not through SOCKS: choose one, or none.",
        ) from error


def fetch(part: Path, size: int, ask: Ask, progress: Callable[[int], None]) -> None:
    """Ask until `size` bytes are in `part`, told as they come; a connection that breaks is made again.

    Raises what `ask` raises, httpx2.TransportError where three tries in a row brought nothing, OSError. What is longer than
    `size` is left soon after it: the disk is not endless. Whether it is the right file is for the caller to see.
    """
    import httpx2

    failures = 0
    with part.open("ab") as written:
        while (before := written.tell()) < size:
            try:
                _append(written, size, ask, progress)
                break  # shorter than `size` is all that they have: its sum will not fit either
            except httpx2.TransportError:
                failures = 0 if written.tell() > before else failures + 1
                if failures == TRIES:
                    raise
                time.sleep(failures)
        os.fsync(written.fileno())


def _append(written: IO[bytes], size: int, ask: Ask, progress: Callable[[int], None]) -> None:
    """One request."""
    headers = {"Accept-Encoding": "identity"}
    if written.tell():
        headers["Range"] = f"bytes={written.tell()}-"
    with ask(headers) as response:
        if response.status_code != 206:  # it does not know Range: from the start, then
            written.seek(0)
            written.truncate()
        for piece in response.iter_bytes(PIECE):
            written.write(piece)
            written.flush()
            if written.tell() > size:
                return
            progress(written.tell())
