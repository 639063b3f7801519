"""Single keys from a terminal, without Return."""

import contextlib
import os
import select
import sys
import time
from collections.abc import Callable, Iterator

ReadKey = Callable[[float], str]  # waits so many seconds for a key; empty if none was pressed


@contextlib.contextmanager
def single_keys() -> Iterator[ReadKey]:
    """How to read keys while the context lasts; where stdin is no terminal, there are none."""
    if not sys.stdin.isatty():
        yield _no_key
    elif sys.platform == "win32":
        yield _windows_key
    else:
        import termios
        import tty

        before = termios.tcgetattr(sys.stdin.fileno())
        try:
            tty.setcbreak(sys.stdin.fileno())
            yield _unix_key
        finally:
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)


def _no_key(seconds: float) -> str:
    time.sleep(seconds)
    return ""


def _unix_key(seconds: float) -> str:
    readable, _, _ = select.select([sys.stdin.fileno()], [], [], seconds)
    return os.read(sys.stdin.fileno(), 16).decode(errors="replace")[:1] if readable else ""


def _windows_key(seconds: float) -> str:
    if sys.platform != "win32":
        raise AssertionError(sys.platform)
    import msvcrt

    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if msvcrt.kbhit():
            return msvcrt.getwch()
        time.sleep(0.02)
    return ""
