"""Home's one suggestion: what a person may do next; or what explains the beginning."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame

from waggle.gui.i18n.formatting import tr
from waggle.gui.state.story.next_step import NextStep, next_step
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.layout import column, row
from waggle.gui.widgets.text import text
from waggle.protocol.state import State


class NextCard(QFrame):
    """Hidden while there is nothing to suggest. `page_wanted` carries a page of the window and its part."""

    page_wanted = Signal(str, str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._theme = theme
        self._step: NextStep | None = None
        self._heading = text(theme, "", "label", "soft")
        self.title, self.says = text(theme, "", "heading", wrap=True), text(theme, "", "small", "soft", wrap=True)
        self.button = Button(theme, "", small=True)
        self.button.clicked.connect(lambda: self._step and self.page_wanted.emit(self._step.page, self._step.part))
        self._box = column(self._heading, self.title, self.says, row(self.button, None, margins=(0, 4, 0, 0)), None, gap=5)
        self.setLayout(self._box)
        self.set_compact(False)

    def set_compact(self, compact: bool) -> None:
        self._box.setSpacing(2 if compact else 5)
        self._box.setContentsMargins(20, 10 if compact else 14, 20, 10 if compact else 16)

    def show_state(self, state: State, now: float) -> None:
        step = next_step(state, now)
        if step != self._step:
            self._step = step
            self._heading.setText(tr("Good to know") if step and step.explains else tr("What next?"))
            self.title.setText(step.title if step else "")
            self.says.setText(step.says if step else "")
            self.button.say(step.button if step else "")
        self.setVisible(step is not None)
