"""A window once nothing in it moves: for pictures of it."""

from PySide6.QtCore import QThread
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from waggle.gui.application.main_window import Window
from waggle.gui.pages.live.page import FRAME_MS

LOOKS = 40  # before it is taken as it is: something may never stand still


def screenshot_when_still(window: Window) -> QImage:
    """The window as it stands once nothing in it moves: Live and Progress make their parts one after the other."""
    image = QImage()
    for _ in range(LOOKS):
        for _ in range(3):  # layouts settle in the second pass
            QApplication.processEvents()
        before, image = image, window.grab().toImage()
        if image == before:
            break
        QThread.msleep(2 * FRAME_MS)
    return image
