"""SIGINT (Ctrl+C) and SIGTERM shut the window down in order."""

import contextlib
import signal
import socket
from collections.abc import Callable, Iterator

from PySide6.QtCore import QSocketNotifier

TERMINATION_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def on_termination_signals(leave: Callable[[], None]) -> Iterator[None]:
    """Call `leave` on SIGINT and SIGTERM while the context is open.

    A Python signal handler runs only when the interpreter runs, which it does not in an idle Qt event loop: `set_wakeup_fd`
    writes to a socket, which wakes the loop.
    """
    ear, mouth = socket.socketpair()
    with ear, mouth:
        ear.setblocking(False)
        mouth.setblocking(False)
        listening = QSocketNotifier(ear.fileno(), QSocketNotifier.Type.Read)
        listening.activated.connect(lambda: leave() if ear.recv(1) else None)
        before = {number: signal.signal(number, lambda *_: None) for number in TERMINATION_SIGNALS}
        awake = signal.set_wakeup_fd(mouth.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(awake)
            for number, handler in before.items():
                signal.signal(number, handler)
            listening.setEnabled(False)
