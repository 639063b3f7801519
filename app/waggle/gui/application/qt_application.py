"""The application, and what the system asks of it while it runs (macOS tells it so): to open an invite link or file, to leave."""

from collections.abc import Callable

from PySide6.QtCore import QEvent
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication


class Application(QApplication):
    """`open_invite` receives each link or path, `leave` ends everything in time; without them Qt does as it does."""

    open_invite: Callable[[str], None] | None = None
    leave: Callable[[], None] | None = None

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QFileOpenEvent) and self.open_invite is not None:
            url = event.url()
            self.open_invite(event.file() if url.isLocalFile() else url.toString())
            return True
        if event.type() == QEvent.Type.Quit and self.leave is not None:  # Qt would ask the window to close: it goes to the tray
            event.ignore()
            self.leave()
            return True
        return super().event(event)
