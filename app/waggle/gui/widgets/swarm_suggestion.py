"""A line that suggests another swarm for the model in training, with a link that shows it and one that dismisses the line."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from waggle.gui.i18n.formatting import one_line, tr
from waggle.gui.state.settings_store import SettingsStore
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.responsive_row import ResponsiveRow
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.layout import FLUSH, column, row
from waggle.gui.widgets.painted_widgets import sign_column
from waggle.gui.widgets.text import text
from waggle.protocol.events import SwarmSuggestion
from waggle.protocol.state import State
from waggle.protocol.text.swarm_suggestion import suggestion, suggestion_text


class SwarmSuggestionLine(QWidget):
    """Hidden while nothing is suggested, and from a press on *Dismiss* on. `swarm_wanted` carries the charter of the swarm."""

    swarm_wanted = Signal(str)

    def __init__(self, theme: Theme, settings: SettingsStore, *, wide: int = 16, beside: int = 8) -> None:
        """`wide` and `beside`: pixels of the column with the sign, and between it and the text."""
        super().__init__()
        self._settings = settings
        self._swarm: SwarmSuggestion | None = None
        self._says = text(theme, "", "small", "soft", wrap=True)
        self._look = Button(theme, tr("Preview"), "link")
        self._look.clicked.connect(lambda: self._swarm and self.swarm_wanted.emit(self._swarm.charter))
        self._dismiss = Button(theme, tr("Dismiss"), "link")
        self._dismiss.setAccessibleName(tr("Dismiss this suggestion"))
        self._dismiss.clicked.connect(self._forget)
        links = ResponsiveRow(self._look, self._dismiss)
        links.set_gap(16)
        sign = sign_column(theme, "swarms", "text_soft", wide)
        self.setLayout(row(sign, (column(self._says, row(FLUSH, (links, 1), gap=0), gap=2), 1), gap=beside))
        self.hide()

    def show_state(self, state: State) -> None:
        swarm = suggestion(state, enabled=self._settings.settings.window.suggest_swarm)
        if swarm != self._swarm and swarm is not None:
            self._says.setText(one_line(tr(suggestion_text(swarm))))
            self._look.say(tr("Preview %1").replace("%1", one_line(swarm.name)))
        self._swarm = swarm
        self.setVisible(swarm is not None)

    def _forget(self) -> None:
        self._settings.set({"window.suggest_swarm": False})
        self.hide()
