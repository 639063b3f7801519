"""Home's answer to "Does sharing help?", and who is here."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QSizePolicy

from waggle.gui.charts.painted.swarm_graph import SwarmGraph
from waggle.gui.i18n.formatting import tr
from waggle.gui.i18n.placeholders import why_unavailable
from waggle.gui.state.story.learning_story import INVITE, Sharing, company_words, sharing_text
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.layout import FLUSH, column, restyle, row
from waggle.gui.widgets.text import text
from waggle.protocol.state import State

LEAST = 96  # pixels of height of the picture, before text scaling


class SharingCard(QFrame):
    """`page_wanted` carries a page of the window and its part."""

    page_wanted = Signal(str, str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._theme, self._compact, self._is_resting = theme, False, True
        self._sharing = Sharing("", "")
        self.says = text(theme, "", "title", wrap=True)
        self.detail = text(theme, "", "small", "soft", wrap=True)
        self._here = text(theme, "", "small", "soft", wrap=True)
        self.link = Button(theme, "", "link")
        self.link.clicked.connect(lambda: self.page_wanted.emit(*self._sharing.offers))
        self._picture = SwarmGraph(theme)
        self._picture.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._picture.setMinimumHeight(theme.px(LEAST))
        self._picture.hide()
        self._box = column(
            text(theme, tr("Does sharing help?"), "label", "soft"), self.says, self.detail, (self._picture, 1000), None,
            self._here, row(FLUSH, self.link, None), gap=6, margins=(20, 14, 20, 12),
        )  # fmt: skip
        self.setLayout(self._box)

    def set_compact(self, compact: bool) -> None:
        """In the compact form, without the picture of the swarm."""
        self._compact = compact
        self._show_picture()
        self._box.setSpacing(2 if compact else 6)
        self._box.setContentsMargins(20, 10 if compact else 14, 20, 6 if compact else 12)
        self.says.setFont(self._theme.font("heading" if compact else "title"))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The picture is no higher than wide."""
        super().resizeEvent(event)
        self._picture.setMaximumHeight(max(self._theme.px(LEAST), self.width()))

    def show_state(self, state: State, now: float) -> None:
        sharing = self._sharing = sharing_text(state)
        self.says.setText(sharing.says)
        restyle(self.says, "tone", sharing.tone)
        self.detail.setText(sharing.detail)
        self.detail.setVisible(bool(sharing.detail))
        self.link.setVisible(bool(sharing.offers[0]))
        self.link.say(tr("Invite someone") if sharing.offers == INVITE else tr("Compare with training alone"))
        resting = bool(why_unavailable(state))
        self._is_resting = resting
        self._show_picture()
        if not self._picture.isHidden():
            self._picture.show_state(state, now)
        words = "" if resting else company_words(state)
        self._here.setText(words)
        self._here.setVisible(bool(words))

    @property
    def is_resting(self) -> bool:
        """Whether there is nobody to show, so that the card ends at its words."""
        return self._is_resting

    def _show_picture(self) -> None:
        self._picture.setVisible(not self._is_resting and not self._compact)
