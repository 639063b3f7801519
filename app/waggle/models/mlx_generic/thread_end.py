"""The end of a thread that called compiled functions of MLX, as mlx-lm's modules do: the program must not end before it.

MLX frees such functions when the system ends the thread, which is a moment after Python has joined it (before Python 3.13), and
needs the interpreter for that. Without the interpreter the program would be aborted.
"""

import atexit
import functools
import sys
import threading
import time
from pathlib import Path

LONGEST_S, STEP_S = 1.0, 0.01
ELSEWHERE_S = 0.2  # where the system does not tell which threads there are


def await_this_thread_at_exit() -> None:
    """When the program ends, after all threads were joined, wait until the system has ended this one."""
    if threading.current_thread() is not threading.main_thread():
        _register(threading.get_native_id())


@functools.cache
def _register(thread: int) -> None:
    atexit.register(_await_end, thread)


def _await_end(thread: int) -> None:
    entry = Path(f"/proc/self/task/{thread}")
    until = time.monotonic() + (LONGEST_S if sys.platform == "linux" else ELSEWHERE_S)
    while time.monotonic() < until and (sys.platform != "linux" or entry.exists()):
        time.sleep(STEP_S)  # lets the other thread have the interpreter
