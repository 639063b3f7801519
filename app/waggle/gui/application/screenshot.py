"""Screenshots of a window once nothing in it moves."""

from PySide6.QtCore import QThread
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from waggle.gui.application.main_window import MainWindow
from waggle.gui.pages.live.feed import FRAME_MS

ATTEMPTS = 40  # then take the image anyway: some animations never end


def screenshot_when_still(window: MainWindow) -> QImage:
    """Grab the window once two grabs in a row are equal: Live and Progress build their parts one after the other."""
    image = QImage()
    for _ in range(ATTEMPTS):
        for _ in range(3):  # layouts settle in the second pass
            QApplication.processEvents()
        before, image = image, window.grab().toImage()
        if image == before:
            break
        QThread.msleep(2 * FRAME_MS)
    return image
