"""Layout helpers: rows, columns, cards, and properties for the style sheet."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QLayout,
    QVBoxLayout,
    QWidget,
)  # fmt: skip

from waggle.gui.i18n.translator import is_right_to_left

Piece = QWidget | QLayout | int | None  # an int is a fixed space in pixels, None a stretch
Part = Piece | tuple[QWidget | QLayout, int]  # with a stretch factor
Edges = tuple[int, int, int, int]
NONE: Edges = (0, 0, 0, 0)
WIDE, WIDEST = 1560, 1840  # pixels: of a page in its wide form at least, and of the content of any page at most
UNLIMITED = (1 << 24) - 1  # pixels: Qt's greatest width and height of a widget
FLUSH = -5  # pixels before a link at the start of a line: aligns its word with the text above, and leaves its focus ring outside


def row(*parts: Part, gap: int = 8, margins: Edges = NONE) -> QHBoxLayout:
    box = QHBoxLayout()
    _fill(box, parts, gap, margins)
    return box


def column(*parts: Part, gap: int = 8, margins: Edges = NONE) -> QVBoxLayout:
    box = QVBoxLayout()
    _fill(box, parts, gap, margins)
    return box


def in_the_middle(widget: QWidget) -> QHBoxLayout:
    """The whole width for a widget; what is beyond its greatest one is shared by both sides."""
    box = row((widget, 1))
    box.insertStretch(0, 0)
    box.addStretch(0)
    return box


def _fill(box: QBoxLayout, parts: Sequence[Part], gap: int, margins: Edges) -> None:
    box.setSpacing(gap)
    box.setContentsMargins(*margins)
    for part in parts:
        match part:
            case None:
                box.addStretch(1)
            case int():
                box.addSpacing(part)
            case (piece, stretch):
                _add(box, piece, stretch)
            case _:
                _add(box, part, 0)


def _add(box: QBoxLayout, piece: QWidget | QLayout, stretch: int) -> None:
    if isinstance(piece, QWidget):
        box.addWidget(piece, stretch)
    else:
        box.addLayout(piece, stretch)


def frame(kind: str, layout: QLayout) -> QFrame:
    box = QFrame()
    box.setProperty("kind", kind)
    box.setLayout(layout)
    return box


def edges(first: int, top: int, last: int, bottom: int) -> Edges:
    """Margins at the start of lines, top, end of lines, bottom. For right-to-left languages Qt mirrors all but margins."""
    return (last, top, first, bottom) if is_right_to_left() else (first, top, last, bottom)


def card(*parts: Part, gap: int = 8, pad: int = 20) -> QFrame:
    return frame("card", column(*parts, gap=gap, margins=(pad, pad - 4, pad, pad - 4)))


def rule() -> QFrame:
    line = frame("line", column())
    line.setFixedHeight(1)
    return line


def as_widget(layout: QLayout) -> QWidget:
    """Wrap a layout in a widget, so that it can be hidden as a whole."""
    box = QWidget()
    box.setLayout(layout)
    return box


def set_visible(widget: QWidget, visible: bool) -> None:
    """Show or hide a part that may not be in its place yet: Qt styles at once what is shown, and again when it moves."""
    if widget.testAttribute(Qt.WidgetAttribute.WA_WState_ExplicitShowHide) or not visible:
        widget.setVisible(visible)


def empty(box: QLayout) -> None:
    """Remove and delete everything in a layout."""
    while (item := box.takeAt(0)) is not None:
        widget, inner = item.widget(), item.layout()
        if widget is not None:
            widget.hide()
            widget.deleteLater()
        elif inner is not None:
            empty(inner)


def restyle(widget: QWidget, name: str, value: object) -> None:
    """Set a dynamic property that the style sheet selects by, and apply the style again."""
    if widget.property(name) == value:
        return
    widget.setProperty(name, value)
    if not widget.testAttribute(Qt.WidgetAttribute.WA_WState_Polished):
        return  # Qt applies the style when it is first shown
    font = widget.font()
    widget.style().unpolish(widget)
    widget.style().polish(widget)
    if widget.font() != font:  # polishing resets the font to that of the first show
        widget.setFont(font)
