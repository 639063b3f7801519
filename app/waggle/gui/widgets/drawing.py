"""Painting functions: hexagons, the logo, avatars and chips."""

import hashlib
import math

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPainterPath, QPen, QPixmap, QPixmapCache, QPolygonF

from waggle.gui.theme.theme import Theme

# Hues of peers. Honey is not among them: it is reserved for this node.
BRIGHT = ("#8CC3DF", "#86CFA6", "#DDA3BE", "#B9ABE3", "#C0C983", "#84CFCB")


HUES = {"light": ("#28658A", "#21694A", "#8A4B6B", "#6B5A9A", "#5F6A2C", "#2C7477"), "dark": BRIGHT, "high_contrast": BRIGHT}


CORNERS = [(math.cos(math.radians(60 * i + 30)), math.sin(math.radians(60 * i + 30))) for i in range(6)]


CHIP_INK = {"accent": "accent_text", "good": "good", "bad": "bad", "peer": "peer"}  # any other tone: text_soft


def hexagon(x: float, y: float, radius: float) -> QPolygonF:
    return QPolygonF([QPointF(x + radius * across, y + radius * down) for across, down in CORNERS])


def words_in_lines(metrics: QFontMetricsF, words: str, room: float, most: int) -> list[str]:
    """Words in up to so many lines of `room` pixels, broken at spaces; a long word, and the last line, may be longer."""
    lines = [""]
    for word in words.split():
        longer = f"{lines[-1]} {word}".strip()
        if metrics.horizontalAdvance(longer) <= room or not lines[-1] or len(lines) == most:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def seven_cells(identity: str) -> tuple[int, ...]:
    """Seven bits (which cells are lit) and the index of a hue, from the digest of an identity."""
    digest = hashlib.sha256(identity.encode("utf-8", "replace")).digest()
    lit = digest[1] | digest[2] & 0x2A
    return (*(lit >> i & 1 for i in range(7)), digest[21] % 6)


def draw_avatar(
    painter: QPainter, theme: Theme, identity: str, centre: QPointF, radius: float, *, mine: bool = False, gone: bool = False
) -> None:
    """Draw an identity as seven hexagons, recognisable from 24 px on. Cached: a swarm shows hundreds of them."""
    device = painter.device()
    ratio = device.devicePixelRatioF() if device else 1.0
    key = f"avatar {theme.mode} {radius:g} {ratio:g} {mine:d}{gone:d} {identity}"
    drawn = QPixmap()
    if not QPixmapCache.find(key, drawn):
        drawn = _avatar(theme, identity, radius, ratio, mine=mine, gone=gone)
        QPixmapCache.insert(key, drawn)
    size = drawn.deviceIndependentSize()
    painter.drawPixmap(centre - QPointF(size.width() / 2, size.height() / 2), drawn)


def _avatar(theme: Theme, identity: str, radius: float, ratio: float, *, mine: bool, gone: bool) -> QPixmap:
    *lit, place = seven_cells(identity)
    hue = QColor(HUES[theme.mode][place])
    if mine or gone:
        hue = theme.colour("accent_line" if mine else "reference")
    edge = math.ceil(radius) + 1
    pixmap = QPixmap(math.ceil(2 * edge * ratio), math.ceil(2 * edge * ratio))
    pixmap.setDevicePixelRatio(ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.colour("surface"))
    painter.drawPolygon(hexagon(edge, edge, radius))
    painter.setBrush(_with_alpha(hue, 0.16 if gone else 0.20))
    painter.drawPolygon(hexagon(edge, edge, radius))
    cell = radius * 0.27
    for i, on in enumerate(lit):
        angle, reach = math.radians(60 * i), 0.0 if i == 6 else 1.98 * cell
        painter.setBrush(_with_alpha(hue, (0.95 if on else 0.28) * (0.75 if gone else 1)))
        painter.drawPolygon(hexagon(edge + reach * math.cos(angle), edge + reach * math.sin(angle), cell))
    painter.end()
    return pixmap


def _with_alpha(colour: QColor, alpha: float) -> QColor:
    translucent = QColor(colour)
    translucent.setAlphaF(alpha)
    return translucent


def draw_cell(painter: QPainter, theme: Theme, centre: QPointF, radius: float, about: int, *, mine: bool) -> None:
    """Draw a group as a hexagon in the hue of specialty `about`, with a hole from the seventh on; `mine` has a honey edge."""
    x, y = centre.x(), centre.y()
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.colour("accent" if mine else "surface"))
    painter.drawPolygon(hexagon(x, y, radius + 2))
    painter.setBrush(QColor(HUES[theme.mode][about % 6]) if about >= 0 else theme.colour("accent_line" if mine else "peer"))
    painter.drawPolygon(hexagon(x, y, radius))
    if about >= 6:
        painter.setBrush(theme.colour("surface"))
        painter.drawPolygon(hexagon(x, y, radius * 0.45))


def draw_logo(painter: QPainter, theme: Theme, centre: QPointF, radius: float) -> None:
    """Draw the logo: a cell of a honeycomb, with the path of a waggle run."""
    x, y = centre.x(), centre.y()
    edge = QPen(theme.colour("accent"), radius * 0.14)
    edge.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    painter.setPen(edge)
    painter.setBrush(theme.colour("accent"))
    painter.drawPolygon(hexagon(x, y, radius * 0.90))
    run = QPen(theme.colour("on_accent"), radius * 0.17)
    run.setCapStyle(Qt.PenCapStyle.RoundCap)
    painter.setPen(run)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    top, step, swing = y - radius * 0.46, radius * 0.92 / 3, radius * 0.42
    path = QPainterPath(QPointF(x, top))
    for i in range(3):
        path.quadTo(x + (swing if i % 2 else -swing), top + (i + 0.5) * step, x, top + (i + 1) * step)
    painter.drawPath(path)


def mirror_box(painter: QPainter, box: QRectF, within: QRectF) -> QRectF:
    """Mirror a box inside `within` if the painter lays out from right to left; otherwise unchanged."""
    if painter.layoutDirection() == Qt.LayoutDirection.LeftToRight:
        return box
    return QRectF(within.left() + within.right() - box.right(), box.top(), box.width(), box.height())


def chip_width(theme: Theme, words: str, *, icon: bool, bare: bool = False) -> float:
    indent = 0 if bare else theme.px(7 if icon else 9)
    room = QFontMetricsF(theme.font("tag")).horizontalAdvance(words)
    return indent + (theme.px(18) if icon else 0) + room + (0 if bare else theme.px(9))


def draw_chip(
    painter: QPainter, theme: Theme, corner: QPointF, words: str, tone: str, icon: str = "", *, room: float = 1e4, ink: str = ""
) -> float:
    """Draw an icon and words on a tinted background; tone "bare" has none. Returns the width used, at most `room` (pixels).

    `ink`: a colour other than that of the tone.
    """
    bare, ink = tone == "bare", ink or CHIP_INK.get(tone, "text_soft")
    width = min(room, chip_width(theme, words, icon=bool(icon), bare=bare))
    x, y, height = corner.x(), corner.y(), theme.size["chip"]
    whole = QRectF(x, y, width, height)
    if not bare:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.colour(f"{tone}_soft" if tone in CHIP_INK else "sunken"))
        painter.drawRoundedRect(whole, height / 2, height / 2)
    indent = x + (0 if bare else theme.px(7 if icon else 9))
    if icon:
        side = theme.px(14)
        theme.draw_icon(painter, icon, ink, mirror_box(painter, QRectF(indent, y + (height - side) / 2, side, side), whole))
        indent += theme.px(18)
    painter.setFont(theme.font("tag"))
    painter.setPen(theme.colour(ink))
    space = QRectF(indent, y, x + width - indent - (0 if bare else theme.px(6)), height)
    cut = QFontMetricsF(theme.font("tag")).elidedText(words, Qt.TextElideMode.ElideRight, space.width() + 1)
    room_for_ink = mirror_box(painter, space.adjusted(0, 0, 4, 0), whole)
    painter.drawText(room_for_ink, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, cut)
    return width
