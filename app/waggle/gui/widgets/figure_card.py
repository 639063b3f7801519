"""A card with one number, its unit and an explanation."""

from PySide6.QtWidgets import QFrame

from waggle.gui.i18n.formatting import figure
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.layout import column, row
from waggle.gui.widgets.painted_widgets import Icon
from waggle.gui.widgets.text import ElidedLabel, text


class FigureCard(QFrame):
    """A card with one number."""

    def __init__(self, theme: Theme, icon: str, title: str) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._value, self._unit = text(theme, "0", "figure"), text(theme, "", "small", "soft")
        self._line = ElidedLabel(theme, role="caption", tone="text_faint")
        head = row(Icon(theme, icon, "accent_text"), text(theme, title, "label", "soft"), None)
        number = row(self._value, column(None, self._unit, 5, gap=0), None, gap=6)
        self.setLayout(column(head, number, self._line, gap=2, margins=(20, 14, 16, 14)))

    def say(self, value: int | str, unit: str, line: str) -> None:
        """Show a value with its unit and one line about it; an empty `value` is shown as a dash."""
        self._value.setText(figure(value) if isinstance(value, int) else value or "–")
        self._unit.setText(unit)
        self._line.say(line)
