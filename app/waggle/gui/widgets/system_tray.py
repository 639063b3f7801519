"""Whether the system has a tray, and Waggle's icon for it."""

from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QSystemTrayIcon

from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.painted_widgets import Logo


def available() -> bool:
    """Whether there is a tray now. Not cached: a tray can come and go."""
    return QSystemTrayIcon.isSystemTrayAvailable()


def logo_icon(theme: Theme, *, awake: bool = True) -> QIcon:
    """The logo as an icon; pale unless `awake`, that is, contributing."""
    icon = QIcon()
    for side in (22, 32, 64, 256):
        mark, pixmap = Logo(theme, side), QPixmap(side, side)
        pixmap.fill("transparent")
        painter = QPainter(pixmap)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setOpacity(1.0 if awake else 0.45)
        mark.draw(painter, pixmap.rect().toRectF())
        painter.end()
        icon.addPixmap(pixmap)
    return icon
