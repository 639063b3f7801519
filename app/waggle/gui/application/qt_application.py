"""The QApplication, and what macOS asks of it at run time: open an invite link or file, quit."""

from PySide6.QtCore import QEvent, QMetaMethod, Signal, SignalInstance
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication


class Application(QApplication):
    """`invite_opened` carries a link or a path; `leave_wanted`: quit. Qt handles the event of a signal without a receiver."""

    invite_opened = Signal(str)
    leave_wanted = Signal()

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QFileOpenEvent) and self._has_receiver(self.invite_opened):
            url = event.url()
            self.invite_opened.emit(event.file() if url.isLocalFile() else url.toString())
            return True
        if event.type() == QEvent.Type.Quit and self._has_receiver(self.leave_wanted):
            event.ignore()  # Qt would close the window, which hides in the tray
            self.leave_wanted.emit()
            return True
        return super().event(event)

    def _has_receiver(self, signal: SignalInstance) -> bool:
        return self.isSignalConnected(QMetaMethod.fromSignal(signal))
