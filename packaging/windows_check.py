"""Lets the app work on Linux without what Windows lacks: no hivemind, no fork, no unix sockets, no signals on the loop.

This proves that nothing of ours asks for what is not there; it does not prove the libraries of others, which ran as on Linux.
"""

import ctypes
import importlib
import os
import subprocess
import sys
import tempfile
import types
from pathlib import Path

import needs

# Loaded while this is still Linux, because they choose their own parts by the system.
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
    """From now on this process lacks what Windows lacks."""
    for name in (*OTHERS, *others):
        importlib.import_module(name)
    import asyncio
    import signal
    import socket

    import psutil

    # what is there only: psutil's classes of priority, and libraries of the system, which here have nothing to tell
    psutil.IDLE_PRIORITY_CLASS, psutil.BELOW_NORMAL_PRIORITY_CLASS, psutil.NORMAL_PRIORITY_CLASS = 19, 10, 0
    user = types.SimpleNamespace(GetLastInputInfo=lambda _: 0)
    shell = types.SimpleNamespace(SHQueryUserNotificationState=lambda _: 1)
    ctypes.windll = types.SimpleNamespace(user32=user, shell32=shell)
    pair, unix = socket.socketpair, socket.AF_UNIX
    socket.socketpair = lambda *_: pair(unix)  # which Windows makes of two ports
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
    """Every module of the app."""
    for name in needs.our_modules():
        if name not in ("waggle.__main__", "waggle.tasks.sandbox.audit_process") and "mlx" not in name:
            importlib.import_module(name)


def works(others: tuple[str, ...], *command: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text(f"import windows_check\nwindows_check.become_windows(*{others!r})\n")
        places = (folder, str(needs.SOURCE), str(needs.ROOT / "packaging"))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places), "PYTHONHASHSEED": "0"}
        return not subprocess.call([sys.executable, *command], env=environment)


def main() -> int:
    window, learning = ("PySide6.QtWidgets", "PySide6.QtSvg", "pyqtgraph", "qasync"), ("torch",)
    tried = (
        works((*window, *learning), "-c", "import windows_check; windows_check.imports()")
        and works(learning, "-m", "waggle", "selftest")
        and works(learning, "-m", "waggle", "selftest", "--set", "swarm.solo=false")  # in a swarm, as installed
        and works(("reasoning_gym", "sympy"), "-c", "import check; check.verifier()")
    )
    print("It works without what Windows lacks." if tried else "Something asks for what Windows lacks.")
    return 0 if tried else 1


if __name__ == "__main__":
    sys.exit(main())
