"""How this node's questions are spread over its specialties: a bar for each, divided by level."""

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter

from waggle.gui.charts.painted.cell_grid import CellGrid
from waggle.gui.i18n.formatting import one_line, percent, tr
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.drawing import mirror_box
from waggle.protocol.events import QuestionShare

NARROWEST, MOST_COLUMNS = 220, 3  # the least width of a column in pixels, and the number of columns
BETWEEN, BAR, AROUND_BAR, BELOW = 28, 5, 3, 9  # pixels between columns, of a bar, above and below it, and between rows
FEW = 0.01  # a share below this has a decimal, so that one of a hundred levels is not "0%"
ALPHAS = {"easy": 0.4, "standard": 0.7, "hard": 1.0}  # of a bar's parts
ALPHA = 0.7  # of a bar with one part
SCALES = (0.1, 0.2, 0.3, 0.5, 1.0)  # shares that a full bar can mean: the least with room for all


def share_text(share: float) -> str:
    return percent(share, 1 if share < FEW else 0)


def level_words(share: QuestionShare) -> str:
    """The shares of the levels; empty if there is one."""
    levels = (f"{tr(level)} {share_text(part)}" for level, part in share.levels.items())
    return " · ".join(levels) if len(share.levels) > 1 else ""


def share_words(share: QuestionShare) -> str:
    """The share of a specialty and those of its levels, in one line."""
    whole = f"{tr(one_line(share.specialty))} {share_text(_whole(share))}"
    return ": ".join(filter(None, (whole, level_words(share))))


def _whole(share: QuestionShare) -> float:
    return sum(share.levels.values())


class QuestionShareBars(CellGrid):
    """The bars in up to three columns, the largest share first. All bars have one scale, up to `full`."""

    narrowest, most_columns, between, below = NARROWEST, MOST_COLUMNS, BETWEEN, BELOW

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, tr("Share of the questions by specialty"))
        self._shares: tuple[QuestionShare, ...] = ()
        self.full = 1.0  # the share that a full bar means
        self._name_metrics = QFontMetricsF(theme.font("small"))
        self._level_metrics = QFontMetricsF(theme.font("caption"))

    def show_shares(self, shares: tuple[QuestionShare, ...]) -> None:
        shares = tuple(sorted(shares, key=_whole, reverse=True))
        if shares == self._shares:
            return
        self._shares = shares
        most = max(map(_whole, shares), default=1.0)
        self.full = next((scale for scale in SCALES if scale >= most), 1.0)
        self.setAccessibleDescription("; ".join(map(share_words, shares)))
        self.fit()
        self.update()

    def count(self) -> int:
        return len(self._shares)

    def cell_height(self) -> float:
        levels = self._level_metrics.height() if any(map(level_words, self._shares)) else 0.0
        return self._name_metrics.height() + 2 * AROUND_BAR + BAR + levels

    def place_of(self, number: int) -> QRectF:
        """The rectangle of a specialty; read from top to bottom."""
        column, row = divmod(number, max(1, self.rows()))
        return self.cell(row, column)

    def draw(self, painter: QPainter, place: QRectF) -> None:
        for number, share in enumerate(self._shares):
            self._draw_share(painter, mirror_box(painter, self.place_of(number), place), share)

    def _draw_share(self, painter: QPainter, cell: QRectF, share: QuestionShare) -> None:
        words, metrics = share_text(_whole(share)), self._name_metrics
        line = QRectF(cell.left(), cell.top(), cell.width(), metrics.height())
        room = cell.width() - metrics.horizontalAdvance(words) - 10
        name = metrics.elidedText(tr(one_line(share.specialty)), Qt.TextElideMode.ElideRight, room)
        self._write(painter, line, name, "small", "text", Qt.AlignmentFlag.AlignLeft)
        self._write(painter, line, words, "small", "text_soft", Qt.AlignmentFlag.AlignRight)
        bar = QRectF(cell.left(), line.bottom() + AROUND_BAR, cell.width(), BAR)
        self._draw_bar(painter, bar, share)
        levels = self._level_metrics.elidedText(level_words(share), Qt.TextElideMode.ElideRight, cell.width())
        below = QRectF(cell.left(), bar.bottom() + AROUND_BAR, cell.width(), self._level_metrics.height())
        self._write(painter, below, levels, "caption", "text_faint", Qt.AlignmentFlag.AlignLeft)

    def _draw_bar(self, painter: QPainter, bar: QRectF, share: QuestionShare) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self.theme.colour("sunken"))
        painter.drawRect(bar)
        start = bar.left()
        for level, part in share.levels.items():
            piece = QRectF(start, bar.top(), bar.width() * part / self.full, bar.height())
            ink = QColor(self.theme.colour("accent_line"))
            ink.setAlphaF(ALPHAS[level] if len(share.levels) > 1 else ALPHA)
            painter.setBrush(ink)
            painter.drawRect(mirror_box(painter, piece, bar))
            start += piece.width()

    def _write(self, painter: QPainter, place: QRectF, words: str, role: str, tone: str, side: Qt.AlignmentFlag) -> None:
        painter.setFont(self.theme.font(role))
        painter.setPen(self.theme.colour(tone))
        painter.drawText(place, side | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, words)

    def words_at(self, point: QPointF) -> str:
        """The words about the specialty at this point; empty where there is none."""
        if self.layoutDirection() == Qt.LayoutDirection.RightToLeft:
            point = QPointF(self.width() - point.x(), point.y())
        return next(
            (share_words(share) for number, share in enumerate(self._shares) if self.place_of(number).contains(point)), ""
        )
