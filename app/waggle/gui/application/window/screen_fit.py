"""Keeps the minimum size of a window within what its screen leaves free, whatever the screen, its panels and its scale factor."""

from PySide6.QtCore import QEvent, QObject, QSize
from PySide6.QtGui import QScreen
from PySide6.QtWidgets import QWidget

FRAME = QSize(16, 48)  # logical pixels: a window frame, at least; systems say what theirs needs late, or never


class ScreenFit(QObject):
    """Follows the window from screen to screen, and panels that come and go.

    A window whose minimum is larger than the free screen is not made smaller by any system: its end lies under the panel.
    """

    def __init__(self, window: QWidget, least: QSize) -> None:
        super().__init__(window)
        self._window, self._least = window, least
        self._screen: QScreen | None = None
        window.installEventFilter(self)
        self._follow()

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Show, QEvent.Type.Resize, QEvent.Type.Move, QEvent.Type.WindowStateChange):
            self._follow()
        return False

    def _follow(self) -> None:
        screen = self._window.screen()
        if screen is not self._screen:
            if self._screen is not None:
                self._screen.availableGeometryChanged.disconnect(self._fit)
            self._screen = screen
            screen.availableGeometryChanged.connect(self._fit)
            screen.destroyed.connect(self._forget)
        self._fit()

    def _forget(self) -> None:
        """The screen was unplugged."""
        self._screen = None

    def _fit(self) -> None:
        window = self._window
        frame = (window.frameGeometry().size() - window.geometry().size()).expandedTo(FRAME)
        least = self._least.boundedTo(window.screen().availableGeometry().size() - frame)
        if least != window.minimumSize():
            window.setMinimumSize(least)
