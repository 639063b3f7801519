"""One run of a child process that answers one frame with one frame, and may be killed at any moment."""

import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

import waggle
from waggle import paths
from waggle.memory import held_by
from waggle.tasks import wire
from waggle.tasks.armour import MEMORY_BYTES, TRIPPED

LOOK_SECONDS = 0.1  # between two looks at how much memory a child has taken: ordinary text is judged before the first
ROOM = 4096  # bytes that the pipe of any system takes although nobody reads
GONE_SECONDS = 5.0  # for a child that closed its pipe to be gone
KILL = 9  # the number of SIGKILL, which Windows does not name

Reply = TypeVar("Reply")


class Forbidden(EOFError):
    """The child's tripwire ended it: a scorer tried on a text what none may."""


class Killed(EOFError):
    """The child was ended from outside (kill -9, or the system short of memory), not by what it was asked."""


class Child(Generic[Reply]):
    """One of our modules as a process. A thread reads its replies, because pipes cannot be waited for on every system."""

    def __init__(self, module: str, read: Callable[[bytes], Reply], *, hash_seed: int = 0) -> None:
        environment = dict(os.environ, PYTHONHASHSEED=str(hash_seed), PYTHONPATH=str(Path(waggle.__file__).parents[1]))
        self.process = subprocess.Popen(paths.program(module), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self._decode = read
        self._replies: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, name=f"replies of {module}", daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        while True:
            frame = wire.receive(self.process.stdout)
            self._replies.put(frame)
            if frame is None:
                return

    def ask(self, request: msgspec.Struct, seconds: float) -> Reply:
        """The reply; raises EOFError when the child died, talks nonsense or took too much memory (not every kernel refuses it
        more), and TimeoutError when it took too long.

        Then it is ended: what it says too late must not be taken for the reply to another request.
        """
        assert self.process.stdin is not None
        if self.process.stdin.closed:
            raise Killed("the verifier is not running")
        self._send(wire.framed(request))
        frame = self._awaited(seconds)
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

    def _awaited(self, seconds: float) -> bytes | None:
        deadline = time.monotonic() + seconds
        while True:
            try:
                return self._replies.get(timeout=max(0.0, min(LOOK_SECONDS, deadline - time.monotonic())))
            except queue.Empty:
                if time.monotonic() >= deadline:
                    self.end()
                    raise TimeoutError(f"no verdict within {seconds:.0f} s") from None
                if held_by(self.process.pid) > MEMORY_BYTES:
                    self.end()
                    raise EOFError(f"the verifier took more than {MEMORY_BYTES / 2**30:.0f} GiB") from None

    def ending(self) -> EOFError:
        """How the child ended, or why it must be ended."""
        try:
            code = self.process.wait(timeout=GONE_SECONDS)
        except subprocess.TimeoutExpired:
            return EOFError("the verifier closed its pipe")
        if code == TRIPPED:
            return Forbidden("the verifier's tripwire ended it")
        kind = Killed if code == -KILL else EOFError
        return kind(f"the verifier ended with {f'signal {-code}' if code < 0 else f'code {code}'}")

    def end(self) -> None:
        """Make sure that it is gone; frees both pipes."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):  # the part of a request that it no longer took is lost with it
                    pipe.close()
