"""Grey bars where the words of a card will stand: what is loading has its place already."""

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QFrame, QSizePolicy

from waggle.gui.i18n.formatting import tr
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.layout import column
from waggle.gui.widgets.painted_widgets import PaintedWidget

WIDTHS = (0.34, 0.72, 0.56, 0.64)  # of the bars, as shares of the room for words
WIDEST = 320  # pixels of a bar, at a text size of 100%
BAR, APART = 11, 25  # pixels: the height of a bar, and from one to the next
PALE = 0.7


class SkeletonBars(PaintedWidget):
    """The bars of one card: a short one for its title, and others below."""

    def __init__(self, theme: Theme, lines: int) -> None:
        super().__init__(theme, name=tr("Loading"))
        self._lines = lines
        self.setFixedHeight(theme.px(APART) * lines)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(self.theme.px(200), self.height())

    def draw(self, painter: QPainter, place: QRectF) -> None:
        bar, apart = self.theme.px(BAR), self.theme.px(APART)
        room = min(place.width(), self.theme.px(WIDEST))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setOpacity(PALE)
        painter.setBrush(self.theme.colour("border"))
        for line in range(self._lines):
            width = room * WIDTHS[line % len(WIDTHS)]
            start = place.right() - width if self.layoutDirection() == Qt.LayoutDirection.RightToLeft else place.left()
            top = place.top() + apart * line + (apart - bar) / 2
            painter.drawRoundedRect(QRectF(start, top, width, bar), bar / 2, bar / 2)


class SkeletonCard(QFrame):
    """A card that is still loading."""

    def __init__(self, theme: Theme, *, lines: int = 3) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self.setLayout(column(SkeletonBars(theme, lines), margins=(20, 14, 20, 14)))
