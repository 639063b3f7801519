"""What the operating system asks of Waggle while it runs (macOS tells it so): to open an invite link or a file, or to leave."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QFileOpenEvent


class Opened(QObject):
    """Put it on the application as an event filter; `called` is told each link or path, `leave` ends everything in time."""

    def __init__(self, parent: QObject, called: Callable[[str], None], leave: Callable[[], None]) -> None:
        super().__init__(parent)
        self._called, self._leave = called, leave
        parent.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QFileOpenEvent):
            url = event.url()
            self._called(event.file() if url.isLocalFile() else url.toString())
            return True
        if event.type() == QEvent.Type.Quit:  # else Qt asks the window to close, which goes to the tray
            event.ignore()
            self._leave()
            return True
        return super().eventFilter(watched, event)
