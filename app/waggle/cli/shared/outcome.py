"""How a command ends: its exit code, and what it prints on stderr if it fails.

Both command lines use it, Waggle's and the laboratory's.
"""

import contextlib
import errno
import io
import logging
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

from waggle.core.errors import WaggleError
from waggle.core.system.os_faults import fault_of, place_of

INTERRUPTED = 130  # the shell's code for Ctrl+C


def open_streams() -> None:
    """Open the null device in the place of stdin, stdout and stderr if the parent process closed them.

    What a terminal or a file of another encoding cannot show, such as a name in Chinese on Windows, is written as an escape.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def exit_code(
    command: Callable[[], int], *, home: Callable[[], Path] | None = None, show: Callable[[WaggleError], None] | None = None
) -> int:
    """Run a command and return its exit code: 0 if it succeeded.

    A WaggleError, or an error of the operating system, becomes one sentence on stderr and code 1. `home` gives the folder that
    the command keeps its data in, if any: an error there is answered with the advice to choose another. `show` presents the
    error in a second way. Other exceptions are faults of Waggle and propagate.
    """
    try:
        code = int(command())
        sys.stdout.flush()  # a full disk shows up here instead of after the end
        return code
    except WaggleError as error:
        return _report(error, show)
    except OSError as error:
        if _is_of_a_pipe(error) and not _flushes("\n"):
            return 0  # nobody reads any more
        if error.errno is None or isinstance(error, BrokenPipeError):  # not from the operating system, or a pipe of our own
            raise
        logging.getLogger(__name__).info("the command failed", exc_info=True)
        _flushes()
        return _report(_explain(error, home), show)
    except KeyboardInterrupt:
        return INTERRUPTED


def stderr_is_read() -> bool:
    """Whether a person reads stderr. For a program started with a click, it is closed or goes to the system's journal."""
    if sys.__stderr__ is None:
        return False
    descriptor = sys.__stderr__.fileno()
    mode = os.fstat(descriptor).st_mode
    return not stat.S_ISSOCK(mode) and (not stat.S_ISCHR(mode) or _is_terminal(descriptor))


def _is_terminal(descriptor: int) -> bool:
    """Whether a device is a terminal. On Windows, `isatty` takes the device that swallows everything for one."""
    try:
        os.get_terminal_size(descriptor)
    except (OSError, ValueError):  # the latter: Windows knows the terminal of the standard streams only
        return False
    return True


def _report(error: WaggleError, show: Callable[[WaggleError], None] | None) -> int:
    if show is not None:
        show(error)
    sys.stderr.write(f"waggle: {error.title}\n")
    if error.advice:
        sys.stderr.write(f"        {error.advice}\n")
    return 1


def _is_of_a_pipe(error: OSError) -> bool:
    """Whether a pipe that nobody reads may be the cause: Windows calls it invalid to write to one."""
    return isinstance(error, BrokenPipeError) or (sys.platform == "win32" and error.errno == errno.EINVAL and not error.filename)


def _flushes(text: str = "") -> bool:
    """Whether stdout accepts output. If not (the disk is full, or `head` has ended), drop the rest of the output."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


def _explain(error: OSError, home: Callable[[], Path] | None) -> WaggleError:
    """The system's error as a sentence. Most of these errors name a file, which may be the home, above it or in it."""
    fault, place = fault_of(error), place_of(error)
    if not place:
        return WaggleError(f"Waggle cannot go on: {fault.reason}.", fault.advice)
    is_home = home is not None
    if home is not None:
        path = Path(place).absolute()
        with contextlib.suppress(OSError):  # the home's name itself is the problem
            root = home().absolute()
            is_home = path.is_relative_to(root) or root.is_relative_to(path)
    advice = f"{fault.advice} Or choose another folder with --home." if is_home else fault.advice
    return WaggleError(f"{place} cannot be used: {fault.reason}.", advice)
