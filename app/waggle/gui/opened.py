"""What the operating system asks to be opened while Waggle runs: an invite link, or a file with one (macOS tells it so)."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QFileOpenEvent


class Opened(QObject):
    """Put it on the application as an event filter; `called` is told each link or path."""

    def __init__(self, parent: QObject, called: Callable[[str], None]) -> None:
        super().__init__(parent)
        self._called = called
        parent.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QFileOpenEvent):
            url = event.url()
            self._called(event.file() if url.isLocalFile() else url.toString())
            return True
        return super().eventFilter(watched, event)
