"""A child process that answers each request frame with one frame and may be killed at any moment."""

import math
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
import psutil

import waggle
from waggle.core import paths
from waggle.core.message import Figure, Message
from waggle.core.system.process_memory import resident_bytes
from waggle.tasks.sandbox import messages
from waggle.tasks.sandbox.hardening import MEMORY_BYTES, TRIPPED

LOOK_SECONDS = 0.1  # between two checks of a child's CPU time and memory; ordinary text is judged before the first
PROGRESS_SECONDS = 0.02  # CPU time, two of Linux's ticks; Windows counts in 0.016 s
STARVED = 0.1  # share of the time limit: a child that got less CPU time was not slow, others had the processor
ROOM = 4096  # bytes that the pipe of every system buffers while nobody reads
GONE_SECONDS = 5.0  # for a child that closed its pipe to exit
UNSEEN = getattr(subprocess, "CREATE_NO_WINDOW", 0)  # Windows: or a service's child opens a console window
KILL = 9  # SIGKILL, which the signal module of Windows lacks

Reply = TypeVar("Reply")


class ChildStarved(TimeoutError):
    """The time limit passed, but the child got almost no CPU time: the computer was busy, or the child was suspended."""


class TripwireTripped(EOFError):
    """The child's tripwire ended it: a scorer did something forbidden with a text."""


class ChildKilled(EOFError):
    """Something else killed the child (kill -9, or a system that is out of memory), not its request."""


class ChildProcess(Generic[Reply]):
    """A module of Waggle in a process of its own. A thread reads its replies, because not every system can wait for a pipe."""

    def __init__(
        self, module: str, read: Callable[[bytes], Reply], *, hash_seed: int = 0, memory_bytes: int | None = None
    ) -> None:
        """`memory_bytes` bounds its resident memory (default: MEMORY_BYTES), beside the limits that it sets itself."""
        environment = dict(os.environ, PYTHONHASHSEED=str(hash_seed), PYTHONPATH=str(Path(waggle.__file__).parents[1]))
        self.process = subprocess.Popen(
            paths.module_command(module), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, creationflags=UNSEEN
        )
        self._decode, self._memory_bytes = read, memory_bytes
        self._replies: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, name=f"replies of {module}", daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        while True:
            frame = messages.receive(self.process.stdout)
            self._replies.put(frame)
            if frame is None:
                return

    def ask(
        self, request: msgspec.Struct, seconds: float, work: float = math.inf, waiting: Callable[[float], None] | None = None
    ) -> Reply:
        """Return the reply. `seconds` bounds wall-clock time, `work` CPU time.

        With `waiting`, `seconds` bounds the time in which the child gets nowhere, by its CPU time: on a slow disk, or beside a
        virus scanner, a start takes long. `waiting` is called several times a second with the seconds since the request; what it
        raises ends the child.

        Raises EOFError if the child died, sent nonsense or took too much memory (not every kernel enforces the limit), and
        TimeoutError if it took too long. Then the child is killed, so that no late reply is taken for that to another request.
        """
        assert self.process.stdin is not None
        if self.process.stdin.closed:
            raise ChildKilled("it is not running")
        self._send(messages.frame_of(request))
        frame = self._wait_for_reply(seconds, work, waiting)
        if frame is None:
            raise self.ending()
        return self._decode(frame)

    def _send(self, frame: bytes) -> None:
        """Never block on a child that does not read."""
        if len(frame) <= ROOM:
            self._write(frame)
        else:
            threading.Thread(target=self._write, args=(frame,), name="a long request", daemon=True).start()

    def _write(self, frame: bytes) -> None:
        assert self.process.stdin is not None
        with suppress(OSError, ValueError):  # it exited; the end of its replies reports that
            self.process.stdin.write(frame)
            self.process.stdin.flush()

    def _wait_for_reply(self, seconds: float, work: float, waiting: Callable[[float], None] | None) -> bytes | None:
        began = progressed = time.monotonic()
        before: float | None = None  # CPU time at the first check: one before each request would cost too much
        furthest = 0.0  # CPU time when the child last got on
        while True:
            with suppress(queue.Empty):
                return self._replies.get(timeout=max(0.0, min(LOOK_SECONDS, progressed + seconds - time.monotonic())))
            now = _cpu_seconds(self.process.pid)
            before = now if before is None else before
            if waiting is not None:
                self._report(waiting, time.monotonic() - began)
                if now - furthest >= PROGRESS_SECONDS:
                    progressed, furthest = time.monotonic(), now
            if error := self._beyond(now - before, work, seconds, late=time.monotonic() >= progressed + seconds):
                self.end()
                raise error

    def _report(self, waiting: Callable[[float], None], waited: float) -> None:
        try:
            waiting(waited)
        except BaseException:
            self.end()  # or a late reply would be taken for that to another request
            raise

    def _beyond(self, worked: float, work: float, seconds: float, *, late: bool) -> TimeoutError | EOFError | None:
        """The error if the child exceeded a limit."""
        if worked >= work:
            return TimeoutError(Message("no answer within %1 s of work", Figure(work)))
        if late:
            kind = TimeoutError if worked >= STARVED * seconds else ChildStarved
            return kind(
                Message("no answer within %1 s, of which it worked for %2 s", Figure(seconds), Figure(max(0.0, worked), 1))
            )
        limit = MEMORY_BYTES if self._memory_bytes is None else self._memory_bytes
        if resident_bytes(self.process.pid) > limit:
            return EOFError(Message("it took more than %1 GiB", Figure(limit / 2**30)))
        return None

    def ending(self) -> EOFError:
        """The error that says how the child exited, or why it has to be killed."""
        try:
            code = self.process.wait(timeout=GONE_SECONDS)
        except subprocess.TimeoutExpired:
            return EOFError("it closed its pipe")
        if code == TRIPPED:
            return TripwireTripped("its tripwire ended it")
        if code < 0:
            return (ChildKilled if code == -KILL else EOFError)(Message("it ended with signal %1", -code))
        return EOFError(Message("it ended with code %1", code))

    def end(self) -> None:
        """Kill the child if it still runs, and close both pipes."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):  # flushing the rest of a request fails
                    pipe.close()


def _cpu_seconds(pid: int) -> float:
    """CPU seconds of a process; NaN, which exceeds no limit, if they are unknown."""
    try:
        process = psutil.Process(pid)
        # In a virtual environment on Windows, python.exe starts the real interpreter as its child and waits for it.
        times = [member.cpu_times() for member in (process, *(process.children() if sys.platform == "win32" else ()))]
    except psutil.Error:
        return math.nan
    return float(sum(each.user + each.system for each in times))
