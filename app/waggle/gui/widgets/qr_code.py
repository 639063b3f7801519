"""A link as a QR code: whole pixels, and black on white in every theme, which cameras read best."""

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter

from waggle.core.qr_code import modules
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.painted_widgets import PaintedWidget

QUIET = 4  # modules of white margin, as the QR standard requires


class QrCode(PaintedWidget):
    """Shows one link about `side` pixels wide, rounded so that a module is whole pixels. Blank without a link."""

    def __init__(self, theme: Theme, side: int, name: str) -> None:
        super().__init__(theme, QSize(side, side), name)
        self._side, self._words = side, ""
        self._modules: tuple[tuple[bool, ...], ...] = ()

    def show_words(self, words: str) -> None:
        if words != self._words:
            self._words, self._modules = words, modules(words)
            count = len(self._modules) + 2 * QUIET
            side = max(2, round(self._side / count)) * count if self._modules else self._side
            self.setFixedSize(side, side)
            self.update()

    @property
    def fits(self) -> bool:
        """Whether the words are short enough for a code."""
        return bool(self._modules) or not self._words

    def draw(self, painter: QPainter, place: QRectF) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(Qt.GlobalColor.white)
        painter.drawRoundedRect(place, 8, 8)
        if not self._modules:
            return
        step = round(place.width()) // (len(self._modules) + 2 * QUIET)
        edge = QUIET * step
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
        painter.setBrush(Qt.GlobalColor.black)
        for y, line in enumerate(self._modules):
            for x, dark in enumerate(line):
                if dark:
                    painter.drawRect(QRectF(edge + x * step, edge + y * step, step, step))
