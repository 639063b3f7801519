"""Saves what a widget shows as a picture."""

from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QPoint
from PySide6.QtGui import QPainter
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QWidget


def save_picture(widget: QWidget, path: Path) -> bool:
    """Write pixels (.png) or a drawing that stays sharp at any size (.svg); returns whether it could. Raises OSError."""
    if path.suffix.lower() != ".svg":
        return bool(widget.grab().save(str(path)))
    content = QByteArray()
    buffer = QBuffer(content)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    drawing = QSvgGenerator(QSvgGenerator.SvgVersion.Svg11)  # which clips what is outside a chart
    drawing.setOutputDevice(buffer)
    drawing.setSize(widget.size())
    drawing.setViewBox(widget.rect())
    drawing.setTitle("Waggle")
    drawing.setResolution(widget.logicalDpiX())
    painter = QPainter(drawing)
    widget.render(painter, QPoint())
    if not painter.end():
        return False
    path.write_bytes(content.data())
    return True
