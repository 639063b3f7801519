"""The invite in a picture with a QR code. Pictures come from strangers: call it in a process of its own that has bounds."""

from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, Qt
from PySide6.QtGui import QImage, QImageReader, QPainter

from waggle.core.errors import SwarmError
from waggle.core.text import pasted_link

KINDS = ("png", "jpeg", "webp", "bmp", "gif")  # the content decides, not the name
MOST_BYTES = 32 << 20  # of a file
MOST_PIXELS = 100_000_000  # phones take pictures of half as many; a picture that is still larger is a bomb
SHARP = 4096  # pixels of the longer side: a code is read no better in a larger picture, which is made smaller while it is decoded
LONGEST_CODE = 8192  # characters; a QR code has at most 4,296


def invite_in_picture(path: Path) -> str:
    """The text of the QR code in a picture that is an invite. Raises SwarmError, and OSError if the file cannot be read."""
    if path.stat().st_size > MOST_BYTES:
        raise SwarmError("The picture is too large.", "Cut the code out of it, or take a screenshot.")
    texts = _codes(_picture(path.read_bytes()))
    if not texts:
        raise SwarmError(
            "There is no QR code in that picture, or it cannot be read.",
            "Take the picture again: the whole code, straight from the front, sharp, without reflections.",
        )
    for text in texts:
        if pasted_link.has_link(text):
            return text
    raise SwarmError("The QR code in that picture is no invite.", "Ask for the code of a Waggle invite, or for its link.")


def _picture(content: bytes) -> QImage:
    """The picture on white, of at most SHARP pixels a side. Raises SwarmError."""
    data = QByteArray(content)
    buffer = QBuffer(data)
    buffer.open(QBuffer.OpenModeFlag.ReadOnly)
    reader = QImageReader(buffer)
    reader.setDecideFormatFromContent(True)
    reader.setAutoTransform(True)
    if bytes(reader.format().data()).decode() not in KINDS:
        raise SwarmError("This is no picture that Waggle can read.", "It reads PNG, JPEG, WebP, BMP and GIF.")
    size = reader.size()
    if size.width() * size.height() > MOST_PIXELS:
        raise SwarmError("The picture is too large.", "Cut the code out of it, or take a screenshot.")
    if max(size.width(), size.height()) > SHARP:
        reader.setScaledSize(size.scaled(SHARP, SHARP, Qt.AspectRatioMode.KeepAspectRatio))
    picture = reader.read()
    if picture.isNull():
        raise SwarmError("The picture is damaged.", "Ask for it again, or take a screenshot of it.")
    on_white = QImage(picture.size(), QImage.Format.Format_RGB32)
    on_white.fill(Qt.GlobalColor.white)  # behind what is transparent
    painter = QPainter(on_white)
    painter.drawImage(0, 0, picture)
    painter.end()
    return on_white.convertToFormat(QImage.Format.Format_Grayscale8)


def _codes(picture: QImage) -> list[str]:
    import zxingcpp

    codes = zxingcpp.read_barcodes(picture, formats=zxingcpp.BarcodeFormat.QRCode)
    return [code.text[:LONGEST_CODE] for code in codes]
