"""Buttons, menus on buttons, and segmented controls."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication, QIcon
from PySide6.QtWidgets import QButtonGroup, QFrame, QSizePolicy, QWidget

from waggle.gui.i18n.translator import is_right_to_left
from waggle.gui.theme.focus_ring import FocusRingButton
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.layout import restyle, row
from waggle.gui.widgets.text import _as_it_is, set_tip


class Button(FocusRingButton):
    """A push button. "&" in its words is no shortcut key, because words may contain a stranger's name.

    `kind` is primary, plain, view (its words say what a press shows), link, title, segment or section. Two buttons joined
    "left" and "right" make a split button.
    """

    def __init__(
        self, theme: Theme, words: str, kind: str = "plain", icon: str = "", *, join: str = "", small: bool = False
    ) -> None:
        super().__init__(_as_it_is(words))
        self._theme, self._kind, self._icon, self._words = theme, kind, icon, words
        self.setProperty("kind", kind)
        self.join(join)
        self.setFont(theme.font("strong" if kind == "primary" and not small else "label"))
        height = theme.size["control_small"] if small else theme.px(40) if kind == "primary" else theme.size["control"]
        self.setFixedHeight({"link": theme.px(24), "title": theme.px(24), "segment": theme.px(26)}.get(kind, height))
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(words)
        theme.changed.connect(self._tint)
        self._tint()

    def say(self, words: str, icon: str = "") -> None:
        if (words, icon) != (self._words, self._icon):
            self._words, self._icon = words, icon
            self.setAccessibleName(words)  # first: a screen reader is told of both, and says the name
            self.setText(_as_it_is(words))
            self._tint()

    def change_to(self, kind: str, words: str, icon: str) -> None:
        """Change kind, words and icon. The caller sets the property that the style sheet selects by."""
        if kind != self._kind:
            self._kind, self._icon = kind, ""
            self.setFont(self._theme.font("strong" if kind == "primary" else "label"))
            self.setFixedHeight(self._theme.px(40) if kind == "primary" else self._theme.size["control"])
        self.say(words, icon)

    def join(self, side: str) -> None:
        """Make this the "left" or "right" half of a split button, or "" for none; mirrored in right-to-left languages."""
        other = {"left": "right", "right": "left", "": ""}[side]
        restyle(self, "join", other if is_right_to_left() else side)

    def with_name(self, name: str) -> "Button":
        """Set accessible name and tooltip of a button without words; returns the button."""
        self.setAccessibleName(name)
        set_tip(self, name)
        return self

    def _tint(self) -> None:
        if not self._icon:
            self.setIcon(QIcon())
            return
        role = "on_accent" if self._kind == "primary" else "text_soft"
        gap = 4 if self.text() and self.layoutDirection() == QGuiApplication.layoutDirection() else 0
        side = self._theme.px(18)
        self.setIcon(self._theme.icon(self._icon, role, side, gap))
        self.setIconSize(QSize(side + gap, side))


def menu_button(theme: Theme, words: str, *, small: bool = False) -> Button:
    """A button that opens a menu: its icon follows the words."""
    button = Button(theme, words, icon="down", small=small)
    button.setLayoutDirection(Qt.LayoutDirection.LeftToRight if is_right_to_left() else Qt.LayoutDirection.RightToLeft)
    button._tint()
    return button


class SegmentedControl(QFrame):
    """A choice of two to four fixed options; `chosen` carries the index."""

    chosen = Signal(int)

    def __init__(self, theme: Theme, words: Sequence[str], name: str) -> None:
        super().__init__()
        self.setProperty("kind", "segments")
        self.index = 0
        self._parts = [Button(theme, word, "segment") for word in words]
        self._group = QButtonGroup(self)
        for i, part in enumerate(self._parts):
            part.setCheckable(True)
            part.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)  # where the control is made wider
            part.setAutoExclusive(True)  # as its group does; only then a screen reader calls it one of several
            self._group.addButton(part)
            part.setAccessibleName(f"{name}: {words[i]}")  # not every screen reader says the name of a group
            part.clicked.connect(self._chooser(i))
        self._parts[0].setChecked(True)
        self.setLayout(row(*self._parts, gap=2, margins=(3, 3, 3, 3)))
        self.setFixedHeight(theme.px(34))
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)

    def choose(self, index: int) -> None:
        self._parts[index].setChecked(True)
        self.index = index
        self.chosen.emit(index)

    def mark(self, index: int | None) -> None:
        """Select an option, or none, without emitting `chosen`."""
        group = self._group
        group.setExclusive(False)
        for i, part in enumerate(self._parts):
            part.setChecked(i == index)
        group.setExclusive(True)
        self.index = index or 0

    def parts(self) -> Sequence[QWidget]:
        return self._parts

    def _chooser(self, index: int) -> Callable[[], None]:
        return lambda: self.choose(index)
