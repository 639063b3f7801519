"""Pictures that are pasted into a field of text."""

from pathlib import Path

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtGui import QGuiApplication, QImage, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QLineEdit

from waggle.gui.state.inputs.invite_link import is_picture

PASTE = QKeySequence.StandardKey.Paste


class PastedPicture(QObject):
    """`pasted` carries a picture from the clipboard, or the path of one that was copied as a file. Text is left to the field."""

    pasted = Signal(object)

    def __init__(self, field: QLineEdit) -> None:
        super().__init__(field)
        field.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and event.matches(PASTE):
            picture = _picture_on_clipboard()
            if picture is not None:
                self.pasted.emit(picture)
                return True
        return super().eventFilter(watched, event)


def _picture_on_clipboard() -> QImage | Path | None:
    clipboard = QGuiApplication.clipboard()
    copied = clipboard.mimeData()
    files = [url.toLocalFile() for url in copied.urls() if url.isLocalFile()]
    if files and is_picture(files[0]):
        return Path(files[0])
    if copied.hasImage() and not copied.hasText():
        return clipboard.image()
    return None
