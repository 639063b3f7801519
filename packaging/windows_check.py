"""Runs the app on Linux without what Windows lacks: no hivemind, no fork, no Unix sockets, no signal handlers on the loop.

This shows that Waggle's own code needs none of it. It says nothing about other libraries, which run as on Linux.
"""

import ctypes
import importlib
import os
import subprocess
import sys
import tempfile
import types
from pathlib import Path

import app_contents

# Imported while this process still looks like Linux, because they choose their code by the system.
OTHERS = (
    "asyncio", "multiprocessing.spawn", "subprocess", "tempfile", "ctypes.util", "platform", "sqlite3", "psutil", "platformdirs",
    "numpy", "cryptography.hazmat.primitives.asymmetric.ed25519", "keyring", "huggingface_hub", "httpx2", "filelock", "tqdm",
)  # fmt: skip
MODULES = ("fcntl", "resource", "termios", "pwd", "grp", "pty", "tty", "uvloop", "hivemind", "readline", "syslog")
OF_OS = ("fork", "forkpty", "getuid", "geteuid", "getgid", "setsid", "mkfifo", "sched_getaffinity", "getloadavg", "chown", "nice")
OF_SIGNAL = (
    "SIGHUP",
    "SIGUSR1",
    "SIGUSR2",
    "SIGSTOP",
    "SIGCONT",
    "SIGCHLD",
    "SIGPIPE",
    "SIGALRM",
    "alarm",
)  # SIGKILL: Popen wants it


def become_windows(*others: str) -> None:
    """Remove from this process what Windows lacks."""
    for name in (*OTHERS, *others):
        importlib.import_module(name)
    import asyncio
    import signal
    import socket

    import psutil

    # what only Windows has: psutil's priority classes, and system libraries, here as stubs
    psutil.IDLE_PRIORITY_CLASS, psutil.BELOW_NORMAL_PRIORITY_CLASS, psutil.NORMAL_PRIORITY_CLASS = 19, 10, 0
    user = types.SimpleNamespace(GetLastInputInfo=lambda _: 0)
    shell = types.SimpleNamespace(SHQueryUserNotificationState=lambda _: 1)
    ctypes.windll = types.SimpleNamespace(user32=user, shell32=shell)
    pair, unix = socket.socketpair, socket.AF_UNIX
    socket.socketpair = lambda *_: pair(unix)  # Windows emulates it with two ports
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    for place, names in ((os, OF_OS), (signal, OF_SIGNAL)):
        for name in names:
            delattr(place, name)
    del socket.AF_UNIX, asyncio.start_unix_server, asyncio.open_unix_connection
    asyncio.SelectorEventLoop.add_signal_handler = _not_here  # type: ignore[method-assign,assignment]
    sys.platform = "win32"


def _not_here(*_: object) -> None:
    raise NotImplementedError


def imports() -> None:
    """Import every module of the app."""
    for name in app_contents.our_modules():
        if name not in ("waggle.__main__", "waggle.tasks.sandbox.audit_process") and "mlx" not in name:
            importlib.import_module(name)


def works(others: tuple[str, ...], *command: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text(f"import windows_check\nwindows_check.become_windows(*{others!r})\n")
        places = (folder, str(app_contents.SOURCE), str(app_contents.ROOT / "packaging"))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places), "PYTHONHASHSEED": "0"}
        return not subprocess.call([sys.executable, *command], env=environment)


def main() -> int:
    window, learning = ("PySide6.QtWidgets", "PySide6.QtSvg", "pyqtgraph", "qasync"), ("torch",)
    tried = (
        works((*window, *learning), "-c", "import windows_check; windows_check.imports()")
        and works(learning, "-m", "waggle", "selftest")
        and works(
            learning, "-m", "waggle", "selftest", "--set", "swarm.solo=false"
        )  # in a swarm, the default of an installed app
        and works(("reasoning_gym", "sympy"), "-c", "import check_exclusions; check_exclusions.verifier()")
    )
    print("The app works without what Windows lacks." if tried else "Something needs what Windows lacks.")
    return 0 if tried else 1


if __name__ == "__main__":
    sys.exit(main())
