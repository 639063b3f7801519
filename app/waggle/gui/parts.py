"""The small parts every page is made of: rows, cards, text, buttons, segments."""

import math
from collections.abc import Callable, Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QFontMetricsF, QGuiApplication, QIcon, QPainter, QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QButtonGroup,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLayout,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)  # fmt: skip

from waggle.gui.language import from_right
from waggle.gui.look import Look
from waggle.gui.paint import Painted
from waggle.gui.ring import Ringed
from waggle.gui.words import tip
from waggle.protocol.state import State

Piece = QWidget | QLayout | int | None  # an int is a fixed space, None a stretch
Part = Piece | tuple[QWidget | QLayout, int]  # with its stretch
Edges = tuple[int, int, int, int]
NONE: Edges = (0, 0, 0, 0)
WIDEST = 1200
LARGE = ("hero", "display", "title")  # the roles of words in Inter Display
FLUSH = -5  # before a link where lines begin: its word stands below other words, and what shows that it has focus around it


class Page(QWidget):
    """One page of the window: shows a State when it is visible, and knows a wide and a compact form."""

    commanded = Signal(object)  # a command for the engine
    said = Signal(str, str)  # what came of something that was asked for, and its sign, as `Status.notice` has them

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.look = look
        self.compact = False
        self._arranged: tuple[int, int, bool, bool] | None = None

    def show_state(self, state: State, now: float) -> None:
        """Redraw what changed; `now` is the moment that "ago" is counted from."""
        raise NotImplementedError

    def arrange(self, edge: int, gap: int) -> None:
        """Take the form that `compact` names, with so much room at the sides and between cards."""
        raise NotImplementedError

    def go_to_search(self) -> None:
        """Go to where something can be looked for, on a page that has such a place."""

    def go_on(self, before: "Page") -> None:
        """Take the place of the same page of an earlier window: what runs there goes on, and what a person chose, typed or waits
        for there is found here, as far as no State has it."""

    def set_compact(self, compact: bool) -> None:
        """The window became narrower than the tokens' `compact_below`, or wider."""
        self.compact = compact
        self._arrange()

    def is_tight(self) -> bool:
        """Whether there is little room for what stands one below the other."""
        return self.compact

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        """Content is never wider than WIDEST: what is more goes to the sides."""
        tight = self.is_tight()
        gap = 12 if tight else self.look.space["base"]
        edge = max(20 if self.compact else self.look.space["page"], (self.width() - WIDEST) // 2)
        if self._arranged != (edge, gap, self.compact, tight):
            self._arranged = (edge, gap, self.compact, tight)
            self.arrange(edge, gap)


def row(*parts: Part, gap: int = 8, margins: Edges = NONE) -> QHBoxLayout:
    box = QHBoxLayout()
    _fill(box, parts, gap, margins)
    return box


def column(*parts: Part, gap: int = 8, margins: Edges = NONE) -> QVBoxLayout:
    box = QVBoxLayout()
    _fill(box, parts, gap, margins)
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
    """Room at the side where lines begin, above, at the other side, and below: Qt turns everything but such figures."""
    return (last, top, first, bottom) if from_right() else (first, top, last, bottom)


def card(*parts: Part, gap: int = 8, pad: int = 20) -> QFrame:
    return frame("card", column(*parts, gap=gap, margins=(pad, pad - 4, pad, pad - 4)))


def rule() -> QFrame:
    line = frame("line", column())
    line.setFixedHeight(1)
    return line


def held(layout: QLayout) -> QWidget:
    """A layout as one widget, to be hidden and shown as a whole."""
    box = QWidget()
    box.setLayout(layout)
    return box


def empty(box: QLayout) -> None:
    """Take everything out of a layout."""
    while (item := box.takeAt(0)) is not None:
        widget, inner = item.widget(), item.layout()
        if widget is not None:
            widget.hide()
            widget.deleteLater()
        elif inner is not None:
            empty(inner)


def text(look: Look, words: str = "", role: str = "body", tone: str = "text", *, wrap: bool = False) -> QLabel:
    label = QLabel(words)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setFont(look.font(role))
    label.setProperty("tone", tone)
    label.setWordWrap(wrap)
    label.setContentsMargins(0, above(look, role), 0, 0)
    return label


def above(look: Look, role: str) -> int:
    """How far the dots of a capital reach above what a title's font says is its height."""
    if role not in LARGE:
        return 0
    metrics = QFontMetricsF(look.font(role))
    return max(0, math.ceil(-metrics.tightBoundingRect("Ü").top() - metrics.ascent()))


def restyle(widget: QWidget, name: str, value: object) -> None:
    """Set a property that the style sheet looks at."""
    if widget.property(name) == value:
        return
    widget.setProperty(name, value)
    if not widget.testAttribute(Qt.WidgetAttribute.WA_WState_Polished):
        return  # it is dressed when it is shown
    font = widget.font()
    widget.style().unpolish(widget)
    widget.style().polish(widget)
    if widget.font() != font:  # Qt gives it the one that it had when it was first shown
        widget.setFont(font)


def say_in(label: QLabel, words: str, tone: str) -> None:
    """A sentence that stands there only while there is something to say."""
    restyle(label, "tone", tone)
    label.setText(words)
    label.setVisible(bool(words))


def announce(widget: QWidget, words: str) -> None:
    """Have a screen reader say it, where there is one, once it has said what it says now."""
    if QAccessible.isActive():
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(widget, words))


def set_tip(widget: QWidget, words: str) -> None:
    widget.setToolTip(tip(words))


class Line(Painted):
    """One line of plain text, closed with an ellipsis where it does not fit; the whole is in its tooltip then."""

    def __init__(self, look: Look, words: str = "", role: str = "body", tone: str = "text", *, right: bool = False) -> None:
        super().__init__(look)
        self._words, self._role, self._tone, self._right = "", role, tone, right
        self._metrics = QFontMetricsF(look.font(role))
        self._height = int(self._metrics.height()) + 2 + 2 * above(look, role)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.say(words)

    def say(self, words: str, tone: str | None = None) -> None:
        if (words, tone or self._tone) == (self._words, self._tone):
            return
        self._words, self._tone = words, tone or self._tone
        self.setAccessibleName(words)
        set_tip(self, "")
        self.updateGeometry()
        self.update()

    def words(self) -> str:
        return self._words

    def sizeHint(self) -> QSize:
        return QSize(int(self._metrics.horizontalAdvance(self._words)) + 2, self._height)

    def minimumSizeHint(self) -> QSize:
        return QSize(min(40, self.sizeHint().width()), self.sizeHint().height())

    def draw(self, painter: QPainter, place: QRectF) -> None:
        cut = self._metrics.elidedText(self._words, Qt.TextElideMode.ElideRight, place.width())
        if cut != self._words and not self.toolTip():
            set_tip(self, self._words)
        painter.setFont(self.look.font(self._role))
        painter.setPen(self.look.colour(self._tone))
        side = Qt.AlignmentFlag.AlignRight if self._right else Qt.AlignmentFlag.AlignLeft
        painter.drawText(place, side | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, cut)


def _as_it_is(words: str) -> str:
    """Qt takes the letter behind a single & for a key."""
    return words.replace("&", "&&")


class Button(Ringed):
    """A verb, and perhaps a stranger's name: no sign in it is a key. `kind` is primary, plain, link or segment; a split button is
    two, joined left and right."""

    def __init__(
        self, look: Look, words: str, kind: str = "plain", icon: str = "", *, join: str = "", small: bool = False
    ) -> None:
        super().__init__(_as_it_is(words))
        self._look, self._kind, self._icon, self._words = look, kind, icon, words
        self.setProperty("kind", kind)
        self.join(join)
        self.setFont(look.font("strong" if kind == "primary" else "label"))
        height = look.px(40) if kind == "primary" else look.size["control_small"] if small else look.size["control"]
        self.setFixedHeight({"link": look.px(24), "title": look.px(24), "segment": look.px(26)}.get(kind, height))
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(words)
        look.changed.connect(self._tint)
        self._tint()

    def say(self, words: str, icon: str = "") -> None:
        if (words, icon) != (self._words, self._icon):
            self._words, self._icon = words, icon
            self.setText(_as_it_is(words))
            self.setAccessibleName(words)
            self._tint()

    def become(self, kind: str, words: str, icon: str) -> None:
        """The same button in another role: its style sheet property is set by whoever asks."""
        if kind != self._kind:
            self._kind, self._icon = kind, ""
            self.setFont(self._look.font("strong" if kind == "primary" else "label"))
            self.setFixedHeight(self._look.px(40) if kind == "primary" else self._look.size["control"])
        self.say(words, icon)

    def join(self, side: str) -> None:
        """With which side ("left", "right"; none) it is the one half of a split button, in a language that begins at the left."""
        other = {"left": "right", "right": "left", "": ""}[side]
        restyle(self, "join", other if from_right() else side)

    def named(self, name: str) -> "Button":
        """A name and a tooltip for a button without a word."""
        self.setAccessibleName(name)
        set_tip(self, name)
        return self

    def _tint(self) -> None:
        if not self._icon:
            self.setIcon(QIcon())
            return
        role = "on_accent" if self._kind == "primary" else "text_soft"
        gap = 4 if self.text() and self.layoutDirection() == QGuiApplication.layoutDirection() else 0
        side = self._look.px(18)
        self.setIcon(self._look.icon(self._icon, role, side, gap))
        self.setIconSize(QSize(side + gap, side))


def menu_button(look: Look, words: str, *, small: bool = False) -> Button:
    """A button that opens a menu: the sign stands after the word."""
    made = Button(look, words, icon="down", small=small)
    made.setLayoutDirection(Qt.LayoutDirection.LeftToRight if from_right() else Qt.LayoutDirection.RightToLeft)
    made._tint()
    return made


class Segments(QFrame):
    """Two to four fixed choices; the chosen one is raised."""

    chosen = Signal(int)

    def __init__(self, look: Look, words: Sequence[str], name: str) -> None:
        super().__init__()
        self.setProperty("kind", "segments")
        self.setAccessibleName(name)
        self.index = 0
        self._parts = [Button(look, word, "segment") for word in words]
        self._group = QButtonGroup(self)
        for i, part in enumerate(self._parts):
            part.setCheckable(True)
            self._group.addButton(part)
            part.setAccessibleName(f"{name}: {words[i]}")
            part.clicked.connect(self._chooser(i))
        self._parts[0].setChecked(True)
        self.setLayout(row(*self._parts, gap=2, margins=(3, 3, 3, 3)))
        self.setFixedHeight(look.px(34))
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)

    def choose(self, index: int) -> None:
        self._parts[index].setChecked(True)
        self.index = index
        self.chosen.emit(index)

    def mark(self, index: int | None) -> None:
        """Show what is chosen, saying nothing; None: neither of them."""
        group = self._group
        group.setExclusive(False)
        for i, part in enumerate(self._parts):
            part.setChecked(i == index)
        group.setExclusive(True)
        self.index = index or 0

    def parts(self) -> Sequence[QWidget]:
        return self._parts

    def _chooser(self, index: int) -> Callable[[], None]:
        return lambda: self.choose(index)


class Scrolled(QScrollArea):
    """What is higher than the page, to be moved up and down; it ends where the page's head ends, scroll bar or none.

    `ground` is what lies behind it: the window's, or a card's "surface".
    """

    def __init__(self, box: QLayout, ground: str = "scrolled") -> None:
        super().__init__()
        self._edges: tuple[int, int] | None = None
        self._inner = box
        inner = QWidget()
        inner.setObjectName(ground)
        self.setProperty("ground", ground)
        inner.setLayout(box)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(inner)
        self.verticalScrollBar().rangeChanged.connect(self._keep_edges)

    def set_edges(self, edge: int, below: int) -> None:
        """Room at the sides, in which the scroll bar stands too, and below the last part."""
        self._edges = edge, below
        self._keep_edges()

    def stand_as(self, other: "Scrolled") -> None:
        """As far down as the other, whose words may be of another size."""
        mine, there = self.verticalScrollBar(), other.verticalScrollBar()
        mine.setValue(round(there.value() * mine.maximum() / max(1, there.maximum())))

    def _keep_edges(self) -> None:
        if self._edges is None:
            return
        edge, below = self._edges
        bar = self.verticalScrollBar()
        beside = edge - (bar.sizeHint().width() if bar.maximum() > 0 else 0)
        self._inner.setContentsMargins(*edges(edge, 0, beside, below))
