"""The QApplication, and what macOS asks of it at run time: open an invite link or file, quit."""

from collections.abc import Callable

from PySide6.QtCore import QEvent
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication


class Application(QApplication):
    """`open_invite` receives each link or path, `leave` shuts down in order; where one is None, Qt handles the event."""

    open_invite: Callable[[str], None] | None = None
    leave: Callable[[], None] | None = None

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QFileOpenEvent) and self.open_invite is not None:
            url = event.url()
            self.open_invite(event.file() if url.isLocalFile() else url.toString())
            return True
        if event.type() == QEvent.Type.Quit and self.leave is not None:  # Qt would close the window, which hides in the tray
            event.ignore()
            self.leave()
            return True
        return super().event(event)
