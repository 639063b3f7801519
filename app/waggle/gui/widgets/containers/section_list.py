"""A list of the sections of a page: a column of names beside them, or where that has no room, one box to choose from."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QButtonGroup, QWidget

from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.controls.inputs import ComboBox
from waggle.gui.widgets.layout import column

WIDTH = 188  # pixels at a text size of 100%


class SectionList(QWidget):
    """`names` are those of the sections, `words` what a person reads. `chosen` carries the name of a section.

    The column is one stop of the Tab key; arrow keys go through it. `jump` is the same as a box, for the page to place.
    """

    chosen = Signal(str)

    def __init__(self, theme: Theme, names: Sequence[str], words: Sequence[str], about: str) -> None:
        super().__init__()
        self._names = list(names)
        self.setAccessibleName(about)
        self.jump = ComboBox(theme, about, list(zip(names, words, strict=True)))
        self.jump.changed.connect(lambda name: self.chosen.emit(str(name)))
        self._group = QButtonGroup(self)
        self._buttons = {name: Button(theme, each, "section") for name, each in zip(names, words, strict=True)}
        for button in self._buttons.values():
            button.setCheckable(True)
            button.setAutoExclusive(True)  # as its group does; only then a screen reader calls it one of several
            button.setFixedWidth(theme.px(WIDTH))
            self._group.addButton(button)
        self._group.idToggled.connect(self._tell)
        self.setLayout(column(*self._buttons.values(), None, gap=2))
        self._shown_section = ""

    def mark(self, name: str) -> None:
        """Show which section is shown; empty: several."""
        self._shown_section = name
        if name:
            self._buttons[name].setChecked(True)
            self.jump.show_value(name)
            return
        self._group.setExclusive(False)
        for button in self._buttons.values():
            button.setChecked(False)
        self._group.setExclusive(True)

    def button(self, name: str) -> Button:
        return self._buttons[name]

    def _tell(self, _button: int, checked: bool) -> None:
        name = next((name for name, button in self._buttons.items() if button.isChecked()), "")
        if checked and name != self._shown_section:
            self.chosen.emit(name)
