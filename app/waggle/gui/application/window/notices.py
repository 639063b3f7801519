"""Notices in the status bar: one at a time, each for as long as it takes to read."""

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

from waggle.gui.application.window.navigation import StatusBar
from waggle.gui.widgets.text import announce

NOTICE_MS, LETTER_MS = 8000, 70  # the least time that a notice stays, and the time to read each of its letters


def is_on_screen(window: QWidget) -> bool:
    """Whether a window is open: neither hidden in the tray nor minimised."""
    return not (window.isHidden() or window.isMinimized())


class Notices(QObject):
    """Shows notices of a window. `unseen` carries one that came while the window was not on screen."""

    unseen = Signal(str)

    def __init__(self, window: QWidget, status: StatusBar) -> None:
        super().__init__(window)
        self._window, self._status, self._permanent = window, status, False
        self._end = QTimer(self)
        self._end.setSingleShot(True)
        self._end.timeout.connect(self._hide)

    def show(self, words: str, icon: str = "warn") -> None:
        """Show a notice and announce it to screen readers; `icon` as in `StatusBar.show_notice`."""
        self._status.show_notice(words, icon)
        announce(self._window, words)
        self._end.start(max(NOTICE_MS, LETTER_MS * len(words)))
        if not is_on_screen(self._window):
            self.unseen.emit(words)

    def show_permanent(self, words: str) -> None:
        """Show a last notice without icon, which no time ends."""
        self._permanent = True
        self.show(words, "")
        self._end.stop()

    def restart_timer(self) -> None:
        """The window came back to the screen: a notice from before stays for the usual time from now."""
        if not self._permanent:
            self._end.start(NOTICE_MS)

    def _hide(self) -> None:
        if self._status.is_read():
            self._end.start(NOTICE_MS)
        elif is_on_screen(self._window):
            self._status.show_notice("")
