"""One run of a child process that answers one frame with one frame, and may be killed at any moment."""

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
from waggle.core.process_memory import resident_bytes
from waggle.tasks.sandbox import messages
from waggle.tasks.sandbox.hardening import MEMORY_BYTES, TRIPPED

LOOK_SECONDS = 0.1  # between two looks at what a child has taken: ordinary text is judged before the first
STARVED = 0.1  # of the time that it was given: who had less of the processor was not too slow
ROOM = 4096  # bytes that the pipe of any system takes although nobody reads
GONE_SECONDS = 5.0  # for a child that closed its pipe to be gone
UNSEEN = getattr(subprocess, "CREATE_NO_WINDOW", 0)  # of Windows, where a service's child would be given a console to look at
KILL = 9  # the number of SIGKILL, which Windows does not name

Reply = TypeVar("Reply")


class Starved(TimeoutError):
    """The time is over, and the child had next to nothing of the processor: others had it, or somebody froze the child."""


class Forbidden(EOFError):
    """The child's tripwire ended it: a scorer tried on a text what none may."""


class Killed(EOFError):
    """The child was ended from outside (kill -9, or the system short of memory), not by what it was asked."""


class Child(Generic[Reply]):
    """One of our modules as a process. A thread reads its replies, because pipes cannot be waited for on every system."""

    def __init__(self, module: str, read: Callable[[bytes], Reply], *, hash_seed: int = 0) -> None:
        environment = dict(os.environ, PYTHONHASHSEED=str(hash_seed), PYTHONPATH=str(Path(waggle.__file__).parents[1]))
        self.process = subprocess.Popen(
            paths.module_command(module), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, creationflags=UNSEEN
        )
        self._decode = read
        self._replies: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, name=f"replies of {module}", daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        while True:
            frame = messages.receive(self.process.stdout)
            self._replies.put(frame)
            if frame is None:
                return

    def ask(self, request: msgspec.Struct, seconds: float, work: float = math.inf) -> Reply:
        """The reply; raises EOFError when the child died, talks nonsense or took too much memory (not every kernel refuses it
        more), and TimeoutError when it took too long: `seconds` of the clock, or `work` of the processor.

        Then it is ended: what it says too late must not be taken for the reply to another request.
        """
        assert self.process.stdin is not None
        if self.process.stdin.closed:
            raise Killed("it is not running")
        self._send(messages.framed(request))
        frame = self._awaited(seconds, work)
        if frame is None:
            raise self.ending()
        return self._decode(frame)

    def _send(self, frame: bytes) -> None:
        """Without ever waiting for a child that does not read."""
        if len(frame) <= ROOM:
            self._write(frame)
        else:
            threading.Thread(target=self._write, args=(frame,), name="a long request", daemon=True).start()

    def _write(self, frame: bytes) -> None:
        assert self.process.stdin is not None
        with suppress(OSError, ValueError):  # ended: so have its replies, which says it
            self.process.stdin.write(frame)
            self.process.stdin.flush()

    def _awaited(self, seconds: float, work: float) -> bytes | None:
        deadline = time.monotonic() + seconds
        before: float | None = None  # at the first look: one at every request would cost more than most requests do
        while True:
            with suppress(queue.Empty):
                return self._replies.get(timeout=max(0.0, min(LOOK_SECONDS, deadline - time.monotonic())))
            now = _worked(self.process.pid)
            before = now if before is None else before
            if error := self._beyond(now - before, work, seconds, late=time.monotonic() >= deadline):
                self.end()
                raise error

    def _beyond(self, worked: float, work: float, seconds: float, *, late: bool) -> TimeoutError | EOFError | None:
        """What it has taken that it may not, if anything."""
        if worked >= work:
            return TimeoutError(f"no answer within {work:.0f} s of work")
        if late:
            kind = TimeoutError if worked >= STARVED * seconds else Starved
            return kind(f"no answer within {seconds:.0f} s, of which it worked for {max(0.0, worked):.1f} s")
        if resident_bytes(self.process.pid) > MEMORY_BYTES:
            return EOFError(f"it took more than {MEMORY_BYTES / 2**30:.0f} GiB")
        return None

    def ending(self) -> EOFError:
        """How the child ended, or why it must be ended."""
        try:
            code = self.process.wait(timeout=GONE_SECONDS)
        except subprocess.TimeoutExpired:
            return EOFError("it closed its pipe")
        if code == TRIPPED:
            return Forbidden("its tripwire ended it")
        kind = Killed if code == -KILL else EOFError
        return kind(f"it ended with {f'signal {-code}' if code < 0 else f'code {code}'}")

    def end(self) -> None:
        """Make sure that it is gone; frees both pipes."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):  # the part of a request that it no longer took is lost with it
                    pipe.close()


def _worked(pid: int) -> float:
    """Seconds of the processor that a process has had; NaN, which is never too much, where nobody can tell."""
    try:
        process = psutil.Process(pid)
        # In a virtual environment of Windows, python.exe starts another and waits for it.
        times = [member.cpu_times() for member in (process, *(process.children() if sys.platform == "win32" else ()))]
    except psutil.Error:
        return math.nan
    return float(sum(each.user + each.system for each in times))
