"""The engine's standard streams: stdout belongs to events, and nothing else in this process can reach it."""

import asyncio
import os
import queue
import sys
import threading
from collections.abc import Callable
from contextlib import suppress


def claim_stdout() -> int:
    """Keep a copy of fd 1 for events and point fd 1 at stderr; the engine's first act, before anything can print."""
    sys.stdout.flush()
    events_descriptor = os.dup(1)
    os.dup2(2, 1)
    return events_descriptor


class Writer:
    """Writes lines in a thread of its own, so that a window that is slow to read never stops the engine."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._queued = self._done = 0  # bytes; each is counted by one thread alone
        self._thread = threading.Thread(target=self._write, name="events", daemon=True)
        self._thread.start()

    def __call__(self, line: bytes) -> None:
        self._queued += len(line)
        self._lines.put(line)

    def waiting(self) -> int:
        """Bytes that are not written yet."""
        return self._queued - self._done

    def close(self, seconds: float = 5.0) -> None:
        """Write what is left, for at most so long."""
        self._lines.put(None)
        self._thread.join(seconds)

    def _write(self) -> None:
        """Once the reader is gone, which the end of stdin says too, what comes is dropped."""
        read = True
        while (line := self._lines.get()) is not None:
            remaining = memoryview(line)
            try:
                while remaining and read:
                    remaining = remaining[os.write(self._descriptor, remaining) :]
            except OSError:
                read = False
            self._done += len(line)


def read_lines(loop: asyncio.AbstractEventLoop, got: Callable[[bytes], None], ended: Callable[[], None]) -> None:
    """Call `got` on the loop for each line of stdin and `ended` once at its end, or where it cannot be read any more."""

    def read() -> None:
        begun = b""
        with suppress(OSError):
            while piece := os.read(0, 1 << 16):  # not sys.stdin: its lock would abort an exit while this thread waits
                *lines, begun = (begun + piece).split(b"\n")
                for line in lines:
                    loop.call_soon_threadsafe(got, line)
        loop.call_soon_threadsafe(ended)

    threading.Thread(target=read, name="commands", daemon=True).start()
