"""A link as a QR code: whole pixels, and black on white in every theme, which cameras read best; before it, its outline."""

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPen

from waggle.core.qr_code import modules
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.painted_widgets import PaintedWidget

QUIET = 4  # modules of white margin, as the QR standard requires
LEAST = 2  # pixels of a module
CORNER, INSET = 0.22, 0.08  # of the side: the squares in three corners of the outline, and their distance from its edges


class QrCode(PaintedWidget):
    """Shows one link in a square of `side` pixels, with modules of whole pixels; an outline of the same size without a link.

    Only a link so long that its modules would be less than LEAST pixels needs more room.
    """

    def __init__(self, theme: Theme, side: int, name: str) -> None:
        super().__init__(theme, QSize(side, side), name)
        self._side, self._words = side, ""
        self._modules: tuple[tuple[bool, ...], ...] = ()

    def show_words(self, words: str) -> None:
        if words != self._words:
            self._words, self._modules = words, modules(words)
            count = len(self._modules) + 2 * QUIET
            side = max(self._side, LEAST * count) if self._modules else self._side
            self.setFixedSize(side, side)
            self.update()

    @property
    def fits(self) -> bool:
        """Whether the words are short enough for a code."""
        return bool(self._modules) or not self._words

    def draw(self, painter: QPainter, place: QRectF) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        if not self._modules:
            self._draw_outline(painter, place)
            return
        painter.setBrush(Qt.GlobalColor.white)
        painter.drawRoundedRect(place, 8, 8)
        step = round(place.width()) // (len(self._modules) + 2 * QUIET)
        edge = (round(place.width()) - len(self._modules) * step) // 2
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
        painter.setBrush(Qt.GlobalColor.black)
        for y, line in enumerate(self._modules):
            for x, dark in enumerate(line):
                if dark:
                    painter.drawRect(QRectF(edge + x * step, edge + y * step, step, step))

    def _draw_outline(self, painter: QPainter, place: QRectF) -> None:
        """The three squares by which a code is known."""
        painter.setBrush(self.theme.colour("sunken"))
        painter.drawRoundedRect(place, 8, 8)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        side, inset = place.width() * CORNER, place.width() * INSET
        thick = side / 7
        pen = QPen(self.theme.colour("border"), thick)
        pen.setJoinStyle(Qt.PenJoinStyle.MiterJoin)
        far = place.width() - 2 * inset - side
        for x, y in ((0.0, 0.0), (far, 0.0), (0.0, far)):
            square = QRectF(place.left() + inset + x, place.top() + inset + y, side, side)
            painter.setPen(pen)
            painter.drawRect(square.adjusted(thick / 2, thick / 2, -thick / 2, -thick / 2))
            painter.fillRect(square.adjusted(2 * thick, 2 * thick, -2 * thick, -2 * thick), self.theme.colour("border"))
