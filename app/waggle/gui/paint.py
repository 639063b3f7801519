"""What is drawn by hand: cells, the mark, avatars, chips, the round as six cells."""

import hashlib
import math
from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPainterPath, QPaintEvent, QPen, QPixmap, QPixmapCache, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from waggle.gui.look import Look
from waggle.gui.words import tip

# Peers' own hues; honey is never among them: it is kept for oneself.
BRIGHT = ("#8CC3DF", "#86CFA6", "#DDA3BE", "#B9ABE3", "#C0C983", "#84CFCB")
HUES = {"light": ("#28658A", "#21694A", "#8A4B6B", "#6B5A9A", "#5F6A2C", "#2C7477"), "dark": BRIGHT, "high_contrast": BRIGHT}
CORNERS = [(math.cos(math.radians(60 * i + 30)), math.sin(math.radians(60 * i + 30))) for i in range(6)]
CHIP_INK = {"accent": "accent_text", "good": "good", "bad": "bad", "peer": "peer"}  # any other tone: text_soft


def hexagon(x: float, y: float, radius: float) -> QPolygonF:
    return QPolygonF([QPointF(x + radius * across, y + radius * down) for across, down in CORNERS])


def seven_cells(identity: str) -> tuple[int, ...]:
    """Which of the seven cells are lit, then the hue: from the digest of an identity."""
    digest = hashlib.sha256(identity.encode("utf-8", "replace")).digest()
    lit = digest[1] | digest[2] & 0x2A
    return (*(lit >> i & 1 for i in range(7)), digest[21] % 6)


def draw_avatar(
    painter: QPainter, look: Look, identity: str, centre: QPointF, radius: float, *, mine: bool = False, gone: bool = False
) -> None:
    """Six cells around one: recognisable at 24 px, no photograph needed. Drawn once: a swarm shows hundreds at a time."""
    device = painter.device()
    ratio = device.devicePixelRatioF() if device else 1.0
    key = f"avatar {look.mode} {radius:g} {ratio:g} {mine:d}{gone:d} {identity}"
    drawn = QPixmap()
    if not QPixmapCache.find(key, drawn):
        drawn = _avatar(look, identity, radius, ratio, mine=mine, gone=gone)
        QPixmapCache.insert(key, drawn)
    size = drawn.deviceIndependentSize()
    painter.drawPixmap(centre - QPointF(size.width() / 2, size.height() / 2), drawn)


def _avatar(look: Look, identity: str, radius: float, ratio: float, *, mine: bool, gone: bool) -> QPixmap:
    *lit, place = seven_cells(identity)
    hue = QColor(HUES[look.mode][place])
    if mine or gone:
        hue = look.colour("accent_line" if mine else "reference")
    edge = math.ceil(radius) + 1
    made = QPixmap(math.ceil(2 * edge * ratio), math.ceil(2 * edge * ratio))
    made.setDevicePixelRatio(ratio)
    made.fill(Qt.GlobalColor.transparent)
    painter = QPainter(made)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(look.colour("surface"))
    painter.drawPolygon(hexagon(edge, edge, radius))
    painter.setBrush(_faded(hue, 0.10 if gone else 0.20))
    painter.drawPolygon(hexagon(edge, edge, radius))
    cell = radius * 0.27
    for i, on in enumerate(lit):
        angle, reach = math.radians(60 * i), 0.0 if i == 6 else 1.98 * cell
        painter.setBrush(_faded(hue, (0.95 if on else 0.28) * (0.55 if gone else 1)))
        painter.drawPolygon(hexagon(edge + reach * math.cos(angle), edge + reach * math.sin(angle), cell))
    painter.end()
    return made


def _faded(colour: QColor, alpha: float) -> QColor:
    made = QColor(colour)
    made.setAlphaF(alpha)
    return made


def draw_cell(painter: QPainter, look: Look, centre: QPointF, radius: float, about: int, *, mine: bool) -> None:
    """One group: its hue says what it is about, from the seventh specialty on with a hole in it; mine has a honey edge."""
    x, y = centre.x(), centre.y()
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(look.colour("accent" if mine else "surface"))
    painter.drawPolygon(hexagon(x, y, radius + 2))
    painter.setBrush(QColor(HUES[look.mode][about % 6]) if about >= 0 else look.colour("accent_line" if mine else "peer"))
    painter.drawPolygon(hexagon(x, y, radius))
    if about >= 6:
        painter.setBrush(look.colour("surface"))
        painter.drawPolygon(hexagon(x, y, radius * 0.45))


def draw_mark(painter: QPainter, look: Look, centre: QPointF, radius: float) -> None:
    """A cell of comb and the waggle run."""
    x, y = centre.x(), centre.y()
    edge = QPen(look.colour("accent"), radius * 0.14)
    edge.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    painter.setPen(edge)
    painter.setBrush(look.colour("accent"))
    painter.drawPolygon(hexagon(x, y, radius * 0.90))
    run = QPen(look.colour("on_accent"), radius * 0.17)
    run.setCapStyle(Qt.PenCapStyle.RoundCap)
    painter.setPen(run)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    top, step, swing = y - radius * 0.46, radius * 0.92 / 3, radius * 0.42
    path = QPainterPath(QPointF(x, top))
    for i in range(3):
        path.quadTo(x + (swing if i % 2 else -swing), top + (i + 0.5) * step, x, top + (i + 1) * step)
    painter.drawPath(path)


def sided(painter: QPainter, box: QRectF, within: QRectF) -> QRectF:
    """A box as it stands where lines begin at the right: as far from that side of `within` as else from the left."""
    if painter.layoutDirection() == Qt.LayoutDirection.LeftToRight:
        return box
    return QRectF(within.left() + within.right() - box.right(), box.top(), box.width(), box.height())


def chip_width(look: Look, words: str, *, icon: bool, bare: bool = False) -> float:
    left = 0 if bare else look.px(7 if icon else 9)
    room = QFontMetricsF(look.font("tag")).horizontalAdvance(words)
    return left + (look.px(18) if icon else 0) + room + (0 if bare else look.px(9))


def draw_chip(
    painter: QPainter, look: Look, corner: QPointF, words: str, tone: str, icon: str = "", *, room: float = 1e4
) -> float:
    """Sign, number, reason on a tinted ground; tone "bare" has none. Returns the width used, at most `room`."""
    bare, ink = tone == "bare", CHIP_INK.get(tone, "text_soft")
    width = min(room, chip_width(look, words, icon=bool(icon), bare=bare))
    x, y, height = corner.x(), corner.y(), look.size["chip"]
    whole = QRectF(x, y, width, height)
    if not bare:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(look.colour(f"{tone}_soft" if tone in CHIP_INK else "sunken"))
        painter.drawRoundedRect(whole, height / 2, height / 2)
    left = x + (0 if bare else look.px(7 if icon else 9))
    if icon:
        side = look.px(14)
        look.draw_icon(painter, icon, ink, sided(painter, QRectF(left, y + (height - side) / 2, side, side), whole))
        left += look.px(18)
    painter.setFont(look.font("tag"))
    painter.setPen(look.colour(ink))
    space = QRectF(left, y, x + width - left - (0 if bare else look.px(6)), height)
    cut = QFontMetricsF(look.font("tag")).elidedText(words, Qt.TextElideMode.ElideRight, space.width() + 1)
    room_for_ink = sided(painter, space.adjusted(0, 0, 4, 0), whole)
    painter.drawText(room_for_ink, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, cut)
    return width


class Painted(QWidget):
    """A widget that draws itself with a Look; subclasses fill in `draw`."""

    def __init__(self, look: Look, size: QSize | None = None, name: str = "") -> None:
        super().__init__()
        self.look = look
        self.setAccessibleName(name)
        if size is not None:
            self.setFixedSize(size)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setLayoutDirection(self.layoutDirection())
        self.draw(painter, QRectF(self.rect()))
        painter.end()

    def draw(self, painter: QPainter, place: QRectF) -> None:
        raise NotImplementedError


class Sign(Painted):
    """One icon from the set, tinted."""

    def __init__(self, look: Look, name: str, role: str, size: int = 16) -> None:
        super().__init__(look, QSize(look.px(size), look.px(size)))
        self._shown = (name, role)

    def show_sign(self, name: str, role: str) -> None:
        if self._shown != (name, role):
            self._shown = (name, role)
            self.update()

    def draw(self, painter: QPainter, place: QRectF) -> None:
        self.look.draw_icon(painter, *self._shown, place)


class Mark(Painted):
    """Waggle's own sign."""

    def __init__(self, look: Look, size: int) -> None:
        super().__init__(look, QSize(size, size), "Waggle")

    def draw(self, painter: QPainter, place: QRectF) -> None:
        draw_mark(painter, self.look, place.center(), place.width() / 2)


class Avatar(Painted):
    """One identity's cells; nothing while there is no identity."""

    def __init__(self, look: Look, size: int) -> None:
        super().__init__(look, QSize(size, size))
        self._shown = ("", False)

    def set_size(self, size: int) -> None:
        self.setFixedSize(size, size)

    def show_identity(self, identity: str, *, mine: bool) -> None:
        if self._shown != (identity, mine):
            self._shown = (identity, mine)
            self.update()

    def draw(self, painter: QPainter, place: QRectF) -> None:
        identity, mine = self._shown
        if identity:
            draw_avatar(painter, self.look, identity, place.center(), place.width() / 2, mine=mine)


class Faces(Painted):
    """Some members, side by side."""

    def __init__(self, look: Look, size: int = 28) -> None:
        super().__init__(look)
        self._size = size
        self._identities: tuple[str, ...] = ()
        self.setFixedSize(1, size + 4)

    def show_identities(self, identities: Sequence[str], names: str) -> None:
        if (tuple(identities), names) == (self._identities, self.accessibleName()):
            return
        self.setAccessibleName(names)
        self._identities = tuple(identities)
        self.setFixedWidth(round(self._size * 0.98 * len(identities)) + 1)
        self.update()

    def draw(self, painter: QPainter, place: QRectF) -> None:
        for i, identity in enumerate(self._identities):
            face = QRectF(i * self._size * 0.98, (place.height() - self._size) / 2, self._size, self._size)
            centre = sided(painter, face, place).center()
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self.look.colour("surface"))
            painter.drawPolygon(hexagon(centre.x(), centre.y(), self._size / 2 + 2))
            draw_avatar(painter, self.look, identity, centre, self._size / 2)


class Chip(Painted):
    """A small word on a tinted ground; where it is cut, the whole is in its tooltip, unless that says something else."""

    def __init__(self, look: Look, words: str = "", tone: str = "plain", icon: str = "") -> None:
        super().__init__(look)
        self.setFixedHeight(look.size["chip"])
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._shown, self._whole = ("", "", ""), ""
        self.say(words, tone, icon)

    def say(self, words: str, tone: str, icon: str = "") -> None:
        if (words, tone, icon) == self._shown:
            return
        self._shown = (words, tone, icon)
        self.setAccessibleName(words)
        self.setMaximumWidth(self.sizeHint().width())
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        words, tone, icon = self._shown
        return QSize(math.ceil(chip_width(self.look, words, icon=bool(icon), bare=tone == "bare")), self.look.size["chip"])

    def minimumSizeHint(self) -> QSize:
        return QSize(min(self.look.px(60), self.sizeHint().width()), self.look.size["chip"])

    def draw(self, painter: QPainter, place: QRectF) -> None:
        words, tone, icon = self._shown
        draw_chip(painter, self.look, QPointF(0, 0), words, tone, icon, room=place.width())
        whole = tip(words) if place.width() < self.sizeHint().width() else ""
        if self.toolTip() in ("", self._whole) and self.toolTip() != whole:
            self.setToolTip(whole)
            self._whole = whole


class Stages(Painted):
    """Where the round stands, as six cells; where start-up stands, as many as it has parts."""

    CELL = 13

    def __init__(self, look: Look) -> None:
        super().__init__(look)
        self._shown = (-1, -1, False)
        self.setFixedHeight(self.CELL + 6)

    def show_stage(self, done: int, total: int, *, held: bool = False) -> None:
        """`done` cells are filled, the next one is begun; a negative `done`: none is begun. While `held` none is bright."""
        if self._shown != (done, total, held):
            self._shown = (done, total, held)
            self.setFixedWidth(total * (self.CELL + 4))
            self.setAccessibleName(f"{max(0, done)} / {total}")
            self.update()

    def draw(self, painter: QPainter, place: QRectF) -> None:
        done, total, held = self._shown
        full, half = ("accent_soft", "surface") if held else ("accent", "accent_soft")
        for i in range(total):
            begun = i <= done
            painter.setPen(QPen(self.look.colour("accent_line" if begun else "control"), 1.3))
            painter.setBrush(self.look.colour(full if i < done else half if i == done else "surface"))
            cell = sided(painter, QRectF(i * (self.CELL + 4), place.top(), self.CELL * 1.2, place.height()), place)
            painter.drawPolygon(hexagon(cell.center().x(), cell.center().y() + 0.5, self.CELL * 0.52))
