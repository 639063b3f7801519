"""The first right answers in the room that a column of Home has left."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from waggle.gui.i18n.formatting import figure, tr
from waggle.gui.state.story.namesakes import namesakes
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.aha_list import INSET, AhaList
from waggle.gui.widgets.layout import column, frame, row
from waggle.gui.widgets.text import ElidedLabel, text
from waggle.protocol.state import State

LEAST, PAD, ABOVE = 2, 20, 12  # entries; pixels beside, above and below them


class FirstAnswersCard(QWidget):
    """Asks for no room: a card with as many whole entries as there is room for, and none below LEAST.

    `progress_wanted`: an entry was chosen.
    """

    progress_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._list = AhaList(theme)
        self._list.chosen.connect(lambda _aha: self.progress_wanted.emit())
        self._title = text(theme, tr("First right answers"), "heading")
        self._part = ElidedLabel(theme, role="small", tone="text_soft", right=True)
        head = row(self._title, (self._part, 1), margins=(INSET, 0, INSET, 0))
        self._box = column(head, self._list, None, gap=6, margins=(PAD - INSET, ABOVE, PAD - INSET, ABOVE))
        self._card = frame("card", self._box)
        self._card.setParent(self)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def show_state(self, state: State) -> None:
        self._list.show_ahas(state.ahas, namesakes(state.peers.values(), state.ahas))
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        around = 2 * ABOVE + self._title.sizeHint().height() + self._box.spacing()
        entries = self._list.show_in(self.height() - around)
        ahas = self._list.count()
        words = tr("the newest %1 of %2").replace("%1", figure(entries)).replace("%2", figure(ahas))
        self._part.say(words if 0 < entries < ahas else "")
        self._card.setGeometry(self.rect())
        self._card.setVisible(entries >= min(LEAST, max(1, ahas)))
