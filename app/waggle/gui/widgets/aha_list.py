"""The first right answers as a list: what was solved, who taught it, and when. Each goes to its pin on the chart."""

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QListWidget, QListWidgetItem

from waggle.gui.i18n.formatting import clock, date_of, day, figure, one_line, peer_name, tooltip_text, tr
from waggle.gui.theme.theme import Theme
from waggle.protocol.events import Aha


def aha_cells(aha: Aha) -> tuple[str, str]:
    """The specialty of a first right answer, and whether it was learned from a peer."""
    specialty = tr(one_line(aha.specialty))
    if aha.origin:
        whose = tr("round %1, after learning from %2").replace("%2", peer_name(aha.name, aha.origin))
    else:
        whose = tr("round %1, found by itself")
    return specialty, whose.replace("%1", figure(aha.round))


class AhaList(QListWidget):
    """Newest first, numbered from the oldest as the pins are. `chosen` carries the Aha that was clicked or entered."""

    chosen = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme, self._ahas = theme, tuple[Aha, ...]()
        self.setFont(theme.font("small"))
        self.setAccessibleName(tr("First right answers"))
        self.setWordWrap(True)
        self.setTextElideMode(Qt.TextElideMode.ElideNone)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QListWidget.ScrollMode.ScrollPerPixel)
        self.setProperty("kind", "plain")
        self.setSpacing(2)
        self.setIconSize(QSize(theme.px(16), theme.px(16)))
        self.itemClicked.connect(self._tell)
        theme.changed.connect(self._fill)

    def show_ahas(self, ahas: Sequence[Aha]) -> None:
        if tuple(ahas) != self._ahas:
            self._ahas = tuple(ahas)
            self._fill()

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
            who = tr("from %1").replace("%1", peer_name(aha.name, aha.origin)) if taught else tr("found by itself")
            when = f"{tr('Round %1').replace('%1', figure(aha.round))}, {day(date_of(aha.at))} {clock(aha.at)}"
            item = QListWidgetItem("\n".join((f"{figure(number)}  {specialty}", who, when)))
            item.setToolTip(tooltip_text(f"{specialty}: {whose}"))
            item.setIcon(self._theme.icon("peers" if taught else "on", "peer" if taught else "accent_line", self._theme.px(16)))
            self.addItem(item)
        self.setCurrentRow(min(row, self.count() - 1))

    def _tell(self, item: QListWidgetItem) -> None:
        self.chosen.emit(self._ahas[len(self._ahas) - 1 - self.row(item)])
