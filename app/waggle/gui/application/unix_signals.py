"""Ctrl+C in the terminal that started the window, and the system's SIGTERM: the window leaves as if it were closed."""

import contextlib
import signal
import socket
from collections.abc import Callable, Iterator

from PySide6.QtCore import QSocketNotifier

ENDS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def on_termination_signals(leave: Callable[[], None]) -> Iterator[None]:
    """Call `leave` for each of them. A handler of Python's waits until Qt calls Python, which an idle window never does."""
    ear, mouth = socket.socketpair()
    with ear, mouth:
        ear.setblocking(False)
        mouth.setblocking(False)
        listening = QSocketNotifier(ear.fileno(), QSocketNotifier.Type.Read)
        listening.activated.connect(lambda: leave() if ear.recv(1) else None)
        before = {number: signal.signal(number, lambda *_: None) for number in ENDS}
        awake = signal.set_wakeup_fd(mouth.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(awake)
            for number, handler in before.items():
                signal.signal(number, handler)
            listening.setEnabled(False)
