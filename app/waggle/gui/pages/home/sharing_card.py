"""Home's answer to "Does sharing help?", and who is here."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QWidget

from waggle.gui.charts.painted.swarm_graph import SwarmGraph
from waggle.gui.i18n.formatting import tr
from waggle.gui.i18n.placeholders import why_unavailable, without_connections
from waggle.gui.state.story.learning_story import INVITE, Sharing, company_words, sharing_text
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.layout import FLUSH, column, restyle, row
from waggle.gui.widgets.text import text
from waggle.protocol.state import State

LEAST = 96  # pixels of height of the picture, before text scaling


class PicturePlace(QWidget):
    """The room of a picture, which asks for none, and shows it from `least` pixels of height on."""

    def __init__(self, picture: QWidget, least: int) -> None:
        super().__init__()
        self._picture, self._least = picture, least
        picture.setParent(self)
        picture.setMinimumHeight(0)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._picture.setGeometry(self.rect())
        self._picture.setVisible(self.height() >= self._least)


class SharingCard(QFrame):
    """`page_wanted` carries a page of the window and its part."""

    page_wanted = Signal(str, str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._theme, self._compact, self._is_resting = theme, False, True
        self._has_room = False  # no other card stands below
        self._sharing = Sharing("", "")
        self.says = text(theme, "", "title", wrap=True)
        self.detail = text(theme, "", "small", "soft", wrap=True)
        self._here = text(theme, "", "small", "soft", wrap=True)
        self.link = Button(theme, "", "link")
        self.link.clicked.connect(lambda: self.page_wanted.emit(*self._sharing.offers))
        self._picture = SwarmGraph(theme)
        self._picture.nobody = tr("Nobody else is here yet")
        self._place = PicturePlace(self._picture, theme.px(LEAST))
        self._box = column(
            text(theme, tr("Does sharing help?"), "label", "soft"), self.says, self.detail, (self._place, 1000), self._here,
            None, row(FLUSH, self.link, None), gap=6, margins=(20, 14, 20, 12),
        )  # fmt: skip
        self.setLayout(self._box)

    def set_compact(self, compact: bool) -> None:
        """In the compact form, without the picture of the swarm, unless no other card needs its room."""
        self._compact = compact
        self._show_picture()
        self._box.setSpacing(2 if compact else 6)
        self._box.setContentsMargins(20, 10 if compact else 14, 20, 6 if compact else 12)
        self.says.setFont(self._theme.font("heading" if compact else "title"))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The picture is no higher than 3:2."""
        super().resizeEvent(event)
        self._place.setMaximumHeight(max(self._theme.px(LEAST), self.width() * 3 // 2))

    def show_state(self, state: State, now: float) -> None:
        sharing = self._sharing = sharing_text(state)
        self.says.setText(sharing.says)
        restyle(self.says, "tone", sharing.tone)
        self.detail.setText(sharing.detail)
        self.detail.setVisible(bool(sharing.detail))
        self.link.setVisible(bool(sharing.offers[0]))
        self.link.say(tr("Invite someone") if sharing.offers == INVITE else tr("Compare with training alone"))
        resting = bool(why_unavailable(state))
        self._is_resting = resting and not state.peers
        self._has_room = resting
        self._show_picture()
        if not self._place.isHidden():
            self._picture.show_state(without_connections(state), now)
        words = "" if resting else company_words(state)
        self._here.setText(words)
        self._here.setVisible(bool(words))

    @property
    def is_resting(self) -> bool:
        """Whether nobody is known and nobody can come, so that the card ends at its words."""
        return self._is_resting

    def _show_picture(self) -> None:
        self._place.setVisible(not self._is_resting and (not self._compact or self._has_room))
