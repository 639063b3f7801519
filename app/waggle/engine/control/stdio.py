"""The engine's standard streams: stdout carries events, and nothing else in the process can write to it."""

import asyncio
import os
import queue
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol


def claim_stdout() -> int:
    """Duplicate fd 1 for events, and point fd 1 at stderr. Call it first: later, a library may have printed into the events."""
    sys.stdout.flush()
    events_descriptor = os.dup(1)
    os.dup2(2, 1)
    return events_descriptor


class LineWriter(Protocol):
    """What takes the engine's events, one JSON line each, and never blocks it."""

    def __call__(self, line: bytes, /) -> None: ...

    def unwritten_bytes(self) -> int:
        """The bytes that wait to be written."""

    def close(self) -> None:
        """Write the remaining lines."""


class Writer:
    """Writes lines in its own thread, so that a slow window never blocks the engine."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._queued = self._written = 0  # bytes; each is written by one thread only
        self._thread = threading.Thread(target=self._write, name="events", daemon=True)
        self._thread.start()

    def __call__(self, line: bytes) -> None:
        self._queued += len(line)
        self._lines.put(line)

    def unwritten_bytes(self) -> int:
        """The bytes that wait to be written."""
        return self._queued - self._written

    def close(self, seconds: float = 5.0) -> None:
        """Write the remaining lines, for at most so many seconds."""
        self._lines.put(None)
        self._thread.join(seconds)

    def _write(self) -> None:
        """Write lines until None comes. Drop them once the reader is gone, which the end of stdin reports, too."""
        is_open = True
        while (line := self._lines.get()) is not None:
            remaining = memoryview(line)
            try:
                while remaining and is_open:
                    remaining = remaining[os.write(self._descriptor, remaining) :]
            except OSError:
                is_open = False
            self._written += len(line)


def read_lines(loop: asyncio.AbstractEventLoop, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
    """Call `on_line` on the loop for each line of stdin, and `on_end` once at its end or when it cannot be read any more."""

    def read() -> None:
        incomplete = b""
        with suppress(OSError):
            while piece := os.read(0, 1 << 16):  # not sys.stdin: its lock would abort an exit while this thread waits
                *lines, incomplete = (incomplete + piece).split(b"\n")
                for line in lines:
                    loop.call_soon_threadsafe(on_line, line)
        loop.call_soon_threadsafe(on_end)

    threading.Thread(target=read, name="commands", daemon=True).start()
