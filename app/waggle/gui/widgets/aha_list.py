"""The first right answers as a list: what was solved, who taught it, and when. Each goes to its pin on the chart."""

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QPainter
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QStyle, QStyledItemDelegate, QStyleOptionViewItem

from waggle.core.peer_id import fingerprint
from waggle.core.text.round_number import round_number
from waggle.gui.i18n.formatting import clock, date_of, day, figure, one_line, peer_name, tooltip_text, tr
from waggle.gui.state.story.namesakes import Namesakes, short_name
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.drawing import hexagon, mirror_box
from waggle.protocol.events import Aha

PIN, GAP = 10, 8  # pixels: the radius of a pin, and around what is drawn
INSET = 11  # pixels between the edge of the list and its pins, by which what stands above it is further inside than the list
MOST_IN_VIEW = 9  # entries: with more, the list scrolls


def aha_cells(aha: Aha) -> tuple[str, str]:
    """The specialty of a first right answer, and who was right first, if it was a peer."""
    specialty = tr(one_line(aha.specialty))
    if aha.origin:
        whose = tr("round %1, %2 was right first").replace("%2", one_line(aha.name) or peer_name("", aha.origin))
    else:
        whose = tr("round %1, found by itself")
    return specialty, whose.replace("%1", figure(round_number(aha.round)))


class _AhaDelegate(QStyledItemDelegate):
    """Draws an entry as its pin, the specialty and the round, and below them whose answer was the first."""

    def __init__(self, theme: Theme, ahas: QListWidget) -> None:
        super().__init__(ahas)
        self._theme = theme

    def sizeHint(self, _option: QStyleOptionViewItem, _index: QModelIndex | QPersistentModelIndex) -> QSize:
        lines = (QFontMetricsF(self._theme.font(role)).height() for role in ("label", "small"))
        return QSize(0, round(sum(lines)) + GAP)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> None:
        theme, whole = self._theme, QRectF(option.rect)
        title, who, when = str(index.data()).split("\n")
        number, specialty = title.split("  ", 1)
        when, taught = when.split(",")[0], bool(index.data(Qt.ItemDataRole.UserRole))
        self.initStyleOption(option, index)
        option.text = ""
        style = option.widget.style()
        style.drawControl(QStyle.ControlElement.CE_ItemViewItem, option, painter, option.widget)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setLayoutDirection(option.direction)
        label, small = (QFontMetricsF(theme.font(role)) for role in ("label", "small"))
        radius, top = theme.px(PIN), whole.top() + GAP / 2
        box = mirror_box(painter, QRectF(whole.left() + 4, top, 2 * radius, label.height()), whole)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.colour("peer" if taught else "accent"))
        painter.drawPolygon(hexagon(box.center().x(), box.center().y(), radius))
        painter.setPen(theme.colour("surface" if taught else "on_accent"))
        painter.setFont(theme.font("caption"))
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, number)
        start = 4 + 2 * radius + GAP
        line = QRectF(whole.left() + start, top, whole.width() - start - 4, label.height())
        below = QRectF(line.left(), line.bottom(), line.width(), small.height())
        apart = small.horizontalAdvance(when)
        align = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        for role, tone, metrics, place, words in (
            ("label", "text", label, line.adjusted(0, 0, -apart - GAP, 0), specialty),
            ("small", "text_soft", small, line.adjusted(line.width() - apart, 0, 1, 0), when),
            ("small", "text_soft", small, below, who),
        ):
            painter.setFont(theme.font(role))
            painter.setPen(theme.colour(tone))
            cut = metrics.elidedText(words, Qt.TextElideMode.ElideRight, place.width())
            painter.drawText(mirror_box(painter, place, whole), align, cut)
        painter.restore()


class AhaList(QListWidget):
    """Newest first, numbered from the oldest as the pins are. `chosen` carries the Aha that was clicked or entered."""

    chosen = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme, self._ahas = theme, tuple[Aha, ...]()
        self._several: Namesakes = frozenset()
        self._is_fitted = False  # its height is that of the entries that have room
        self.setFont(theme.font("small"))
        self.setAccessibleName(tr("First right answers"))
        self.setItemDelegate(_AhaDelegate(theme, self))
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QListWidget.ScrollMode.ScrollPerPixel)
        self.setProperty("kind", "plain")
        self.itemClicked.connect(self._tell)
        theme.changed.connect(self._fill)

    def show_ahas(self, ahas: Sequence[Aha], several: Namesakes) -> None:
        if (tuple(ahas), several) != (self._ahas, self._several):
            self._ahas, self._several = tuple(ahas), several
            self._fill()

    def show_in(self, height: int) -> int:
        """Show as many whole entries as fit in so many pixels, and return how many; one scrolls to the others."""
        self._is_fitted, high = True, max(1, self.sizeHintForRow(0))
        around = max(0, self.height() - self.viewport().height())
        entries = max(0, min(self.count(), (height - around) // high))
        self.setFixedHeight(entries * high + around)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        return entries

    def sizeHint(self) -> QSize:
        """As high as all entries."""
        return QSize(super().sizeHint().width(), self._height_of(self.count()))

    def _height_of(self, entries: int) -> int:
        return max(0, self.sizeHintForRow(0)) * entries + 2 * GAP

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space) and self.currentItem() is not None:
            self._tell(self.currentItem())
        else:
            super().keyPressEvent(event)

    def _fill(self) -> None:
        row = self.currentRow()
        self.clear()
        for number, aha in reversed(list(enumerate(self._ahas, 1))):
            specialty, whose = aha_cells(aha)
            taught = bool(aha.origin)
            who = (
                tr("%1 was right first").replace("%1", short_name(aha.name, aha.origin, self._several))
                if taught
                else tr("found by itself")
            )
            when = f"{tr('Round %1').replace('%1', figure(round_number(aha.round)))}, {day(date_of(aha.at))} {clock(aha.at)}"
            item = QListWidgetItem("\n".join((f"{figure(number)}  {specialty}", who, when)))
            item.setToolTip(tooltip_text(f"{specialty}: {whose}{f' ({fingerprint(aha.origin)})' if taught else ''}"))
            item.setData(Qt.ItemDataRole.UserRole, taught)
            self.addItem(item)
        if self.count() and not self._is_fitted:
            self.setMinimumHeight(
                self._height_of(min(self.count(), MOST_IN_VIEW))
            )  # beside another scroll bar it needs none of its own
        self.updateGeometry()
        self.setCurrentRow(min(row, self.count() - 1))

    def _tell(self, item: QListWidgetItem) -> None:
        self.chosen.emit(self._ahas[len(self._ahas) - 1 - self.row(item)])
