"""Draws resources/waggle.svg into an image file: PNG, .ico for Windows or .icns for Macs."""

import io
import sys
from pathlib import Path

from PIL import Image
from PySide6.QtCore import QBuffer, QIODevice
from PySide6.QtGui import QGuiApplication, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

DRAWING = Path(__file__).resolve().parent.parent / "resources/waggle.svg"
SIZES = (16, 24, 32, 48, 64, 128, 256)


def draw(size: int) -> Image.Image:
    """The icon, drawn at this size and not scaled."""
    image = QImage(size, size, QImage.Format.Format_ARGB32)
    image.fill(0)
    painter = QPainter(image)
    QSvgRenderer(str(DRAWING)).render(painter)
    painter.end()
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")
    return Image.open(io.BytesIO(buffer.data().data())).convert("RGBA")


def main(target: Path) -> None:
    app = QGuiApplication.instance() or QGuiApplication(["icon", "-platform", "offscreen"])
    assert app is not None
    match target.suffix:
        case ".ico":
            pictures = [draw(size) for size in SIZES]
            pictures[-1].save(target, sizes=[(size, size) for size in SIZES], append_images=pictures[:-1])
        case ".icns":
            draw(1024).save(target, append_images=[draw(size) for size in (16, 32, 64, 128, 256, 512)])
        case _:
            draw(512).save(target)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
