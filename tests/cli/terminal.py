"""A terminal of 80 x 24 characters at which a program runs, for tests that press keys and read."""

import fcntl
import os
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence

SECONDS = 60.0


class Terminal:
    """Runs a program until the context ends. `raw` is all that it wrote."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._person, self._terminal = os.openpty()
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self._before = termios.tcgetattr(self._terminal)
        streams = {"stdin": self._terminal, "stdout": self._terminal, "stderr": self._terminal}
        self._program = subprocess.Popen(command, env=environment, **streams)
        self.raw = b""

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        self._program.kill()
        self._program.wait()
        os.close(self._person)
        os.close(self._terminal)

    def press(self, keys: bytes) -> None:
        os.write(self._person, keys)

    def read_until(self, holds: Callable[[], object]) -> None:
        """Read what the program writes until something holds. Fails if that takes too long."""
        deadline = time.monotonic() + SECONDS
        while not holds():
            assert time.monotonic() < deadline, self.raw[-2000:]
            self.raw += os.read(self._person, 1 << 16) if select.select([self._person], [], [], 0.1)[0] else b""

    def read_until_written(self, words: bytes) -> None:
        self.read_until(lambda: words in self.raw)

    def exit_code(self) -> int:
        """Wait for the program's end."""
        self.read_until(lambda: self._program.poll() is not None)
        return self._program.returncode

    def is_as_before(self) -> bool:
        """Whether the program left the terminal with the modes that it found."""
        return termios.tcgetattr(self._terminal) == self._before
