"""The share card: a picture of what this computer has contributed, to show to a friend."""

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QImage, QPainter, QPen

from waggle.gui.i18n.formatting import figure, one_line, plural, tr
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.drawing import draw_avatar, draw_logo
from waggle.protocol.figures.daily_totals import totals
from waggle.protocol.state import State

SIZE = QSize(1200, 630)  # pixels, the size of link previews
EDGE = 72


def share_card_figures(state: State) -> list[tuple[str, str]]:
    """Three figures, each with what it counts."""
    days = totals(state)
    return [
        (figure(days.all.answers), tr("answers tried")),
        (figure(days.all.right), tr("of them right")),
        (figure(days.used_by), plural(days.used_by, "peer took some", "peers took some")),
    ]


def share_card(theme: Theme, state: State) -> QImage:
    """Draw the card in the present theme. It holds the friendly name, the swarm's name and the figures, nothing else."""
    image = QImage(SIZE, QImage.Format.Format_RGB32)
    image.fill(theme.colour("window"))
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    ready = state.ready
    name = one_line(ready.name) if ready else tr("You")
    draw_avatar(painter, theme, ready.node if ready else "", QPointF(EDGE + 96, 190), 96, mine=True)
    _write(painter, theme, "hero", 62, "text", QRectF(EDGE + 230, 108, 830, 90), name)
    swarm = tr("trains a small language model in %1").replace("%1", one_line(ready.swarm)) if ready else ""
    _write(painter, theme, "body", 30, "text_soft", QRectF(EDGE + 230, 198, 830, 50), swarm)
    painter.setPen(QPen(theme.colour("border"), 2))
    painter.drawLine(EDGE, 330, SIZE.width() - EDGE, 330)
    for i, (number, words) in enumerate(share_card_figures(state)):
        x = EDGE + i * 360
        _write(painter, theme, "figure", 66, "accent_text" if i == 0 else "text", QRectF(x, 352, 350, 84), number)
        _write(painter, theme, "body", 26, "text_soft", QRectF(x, 436, 350, 40), words)
    draw_logo(painter, theme, QPointF(EDGE + 24, 556), 26)
    line = tr("Waggle: ordinary computers learn together, peer to peer")
    _write(painter, theme, "heading", 26, "text", QRectF(EDGE + 66, 534, 990, 44), line)
    painter.end()
    return image


def _write(painter: QPainter, theme: Theme, role: str, size: int, ink: str, place: QRectF, words: str) -> None:
    font = QFont(theme.font(role))
    font.setPixelSize(size)
    painter.setFont(font)
    painter.setPen(theme.colour(ink))
    cut = painter.fontMetrics().elidedText(words, Qt.TextElideMode.ElideRight, int(place.width()))
    painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, cut)
