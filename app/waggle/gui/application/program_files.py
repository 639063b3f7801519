"""Notices that Waggle's own files were replaced or moved while it runs, as by an upgrade.

What was not loaded until then no longer fits to what runs, so the person is asked to open Waggle again.
"""

import os
import sys
from pathlib import Path

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import QMessageBox, QWidget

import waggle
from waggle.gui.i18n.formatting import tr

CHECK_MS = 10_000


class ProgramFiles(QObject):
    """Looks at the program's files now and then; `changed` is emitted once, when they first differ from those at the start."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None, *, program: Path | None = None) -> None:
        super().__init__(parent)
        self._program = program or Path(sys.executable if getattr(sys, "frozen", False) else waggle.__file__)
        self._at_start = self._identity()
        self._is_announced = False
        timer = QTimer(self)
        timer.timeout.connect(self.check)
        timer.start(CHECK_MS)

    def check(self) -> bool:
        """Whether the files have changed."""
        has_changed = self._identity() != self._at_start
        if has_changed and not self._is_announced:
            self._is_announced = True
            self.changed.emit()
        return has_changed

    def _identity(self) -> tuple[int, ...] | None:
        """None if the file is gone."""
        try:
            status = os.stat(self._program)
        except OSError:
            return None
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def ask_to_close(window: QWidget) -> QMessageBox:
    """Show, without waiting, that Waggle has to be opened again; `accepted` if the person wants to close it now."""
    box = QMessageBox(QMessageBox.Icon.Information, "Waggle", tr("Waggle was upgraded or moved while it runs."), parent=window)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setInformativeText(
        tr("Close it and open it again, so that all parts fit together. What your model has learned is saved.")
    )
    close = box.addButton(tr("Close Waggle"), QMessageBox.ButtonRole.AcceptRole)
    box.addButton(tr("Later"), QMessageBox.ButtonRole.RejectRole)
    box.setDefaultButton(close)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.open()
    return box
