"""Rows that become columns when they lack width, for example with large text in a small window."""

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QWidget

from waggle.gui.widgets.layout import row


class ResponsiveRow(QWidget):
    """Parts side by side, each with its preferred width."""

    def __init__(self, *parts: QWidget) -> None:
        super().__init__()
        self._parts = parts
        self._box = self._new_layout()
        self.setLayout(self._box)

    def _new_layout(self) -> QBoxLayout:
        box = row(*self._parts, None)
        for part in self._parts:
            box.setAlignment(part, Qt.AlignmentFlag.AlignLeading)
        return box

    def set_gap(self, gap: int) -> None:
        self._box.setSpacing(gap)

    def width_side_by_side(self) -> int:
        """The least width in pixels at which all parts fit side by side."""
        return sum(_part_width(part) for part in self._parts) + self._gaps()

    def minimumSizeHint(self) -> QSize:
        """The width of the widest part: in a column that is enough."""
        return QSize(max(part.minimumSizeHint().width() for part in self._parts), self._box.minimumSize().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fold()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:  # a part changed its width
            self._fold()
        return super().event(event)

    def _fold(self) -> None:
        ways = QBoxLayout.Direction
        self._box.setDirection(ways.LeftToRight if self.width_side_by_side() <= self.width() else ways.TopToBottom)

    def _gaps(self) -> int:
        return self._box.spacing() * (len(self._parts) - 1)


class StretchRow(ResponsiveRow):
    """Parts with stretch factors; a part with factor 0 has its preferred width."""

    def __init__(self, *parts: tuple[QWidget, int], gap: int = 8) -> None:
        super().__init__(*(part for part, _share in parts))
        self.set_gap(gap)
        for place, (_part, share) in enumerate(parts):
            self._box.setStretch(place, share)

    def _new_layout(self) -> QBoxLayout:
        return row(*self._parts)


class EvenRow(ResponsiveRow):
    """Parts of equal width that fill the row."""

    def _new_layout(self) -> QBoxLayout:
        return row(*((part, 1) for part in self._parts))

    def width_side_by_side(self) -> int:
        return max(_part_width(part) for part in self._parts) * len(self._parts) + self._gaps()


def _part_width(part: QWidget) -> int:
    return part.width_side_by_side() if isinstance(part, ResponsiveRow) else part.minimumSizeHint().width()
