"""Peers before anybody is met: this node, why nobody is around it, and a button that invites someone."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from waggle.gui.i18n.formatting import tr
from waggle.gui.i18n.placeholders import why_unavailable
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.layout import column, row
from waggle.gui.widgets.painted_widgets import Avatar
from waggle.gui.widgets.text import set_tip, text
from waggle.protocol.state import State

FACE = 56  # pixels, before text scaling
ABOVE = 20  # pixels above and below all


class NobodyYet(QWidget):
    """`invite_wanted`: the person wants to invite someone."""

    invite_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._face = Avatar(theme, theme.px(FACE))
        self.title, self.says = text(theme, "", "title", wrap=True), text(theme, "", "body", "soft", wrap=True)
        for words in (self.title, self.says):
            words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.invite = Button(theme, tr("Invite someone"), "primary", "invite")
        self.invite.clicked.connect(self.invite_wanted)
        self.setLayout(
            column(
                None,
                row(None, self._face, None),
                4,
                self.title,
                self.says,
                4,
                row(None, self.invite, None),
                None,
                gap=10,
                margins=(0, ABOVE, 0, ABOVE),
            )
        )

    def show_state(self, state: State, title: str, says: str, *, can_invite: bool) -> None:
        """`can_invite`: a recorded run, and a swarm of one computer, invite nobody."""
        self._face.show_identity(state.ready.node if state.ready else "me", mine=True)
        self.title.setText(title)
        self.says.setText(says)
        self.invite.setVisible(can_invite)
        self.invite.setEnabled(not why_unavailable(state))
        set_tip(self.invite, why_unavailable(state))
