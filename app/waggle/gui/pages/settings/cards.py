"""The cards of a section of Settings, and their rows."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QWidget

from waggle.core.settings import Value
from waggle.gui.i18n.formatting import tr
from waggle.gui.pages.settings.rows import Group, Section, Setting, TextLine, Toggle, WeekHours, is_wide, make_control
from waggle.gui.pages.settings.value_words import default_words
from waggle.gui.state.settings_store import SettingsStore
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.two_columns import TwoColumns
from waggle.gui.widgets.controls.buttons import Button, SegmentedControl
from waggle.gui.widgets.layout import column, row, rule, set_visible
from waggle.gui.widgets.text import set_tip, text

WIDTH = 300  # pixels of the controls beside their words: one width in all sections; with larger text at most as much larger
SCALED_WIDTH = 228  # pixels before text scaling: at least, for larger text
HIGH = 4  # rows: about the height of a row that is wide


class SettingRow(QFrame):
    """One row: title, note, control, and while the value is not the default, what that is and a way back to it."""

    def __init__(self, theme: Theme, row_of: Setting, settings_store: SettingsStore, role: str = "strong") -> None:
        super().__init__()
        self.key = row_of.key
        self._row, self._settings_store = row_of, settings_store
        self._control = make_control(theme, row_of)
        self._control.changed.connect(self._set)
        title, default = tr(row_of.title), default_words(row_of)
        back = tr("Reset %1 to: %2").replace("%1", title).replace("%2", default)
        self._reset = Button(theme, "", "link", "undo").with_name(back)
        self._reset.clicked.connect(lambda: settings_store.set({row_of.key: None}))
        room = self._reset.sizePolicy()
        room.setRetainSizeWhenHidden(True)
        self._reset.setSizePolicy(room)
        self._later = text(theme, tr("Applies from the next start."), "small", "faint")
        self._note = text(theme, "", "small", "soft", wrap=True)
        self._default = text(theme, tr("Default: %1").replace("%1", default), "small", "faint", wrap=True)
        words = column(text(theme, title, role, wrap=True), self._note, self._default, self._later, gap=2)
        set_tip(self._control, self._default.text())
        head = row((words, 1), 12, self._reset)
        self._open: Button | None = None
        if isinstance(row_of.kind, WeekHours):  # a week of all hours is folded
            self._open = Button(theme, tr("Choose hours"), small=True)
            self._open.clicked.connect(self.take_focus)
            head.addWidget(self._open)
        if is_wide(row_of):
            self.setLayout(column(head, self._control, gap=8))
        else:
            head.addWidget(self._control)
            self.setLayout(column(head))
        self.words = f"{title} {tr(row_of.note)} {tr(row_of.at_zero or '')} {row_of.key}".lower()
        self.show_value()

    def take_focus(self) -> None:
        """Focus the control, which unfolds."""
        self.unfold()
        self._control.setFocus(Qt.FocusReason.OtherFocusReason)

    def unfold(self) -> None:
        """Show a control that is folded at first."""
        if self._open is not None and not self._open.isHidden():
            set_visible(self._open, False)
            self.show_value()

    def show_value(self) -> None:
        value = self._settings_store.value(self._row.key)
        self._control.show_value(value)
        if self._open is not None and value:
            set_visible(self._open, False)
        folded = self._open is not None and not self._open.isHidden()
        set_visible(self._control, not folded)
        whole = bool(value) or self._row.at_zero == "" or (self._open is not None and not folded)
        note = tr(self._row.note if whole else self._row.at_zero or "")
        if self._settings_store.far and self._row.far:
            note = f"{note} {tr(self._row.far)}"
        self._note.setText(note)
        set_visible(self._note, bool(note))
        self._control.setAccessibleDescription(f"{note} {self._default.text()}.".strip())
        changed = not self._settings_store.is_default(self._row.key)
        for part in (self._reset, self._default):
            set_visible(part, changed)
        set_visible(self._later, self._row.key in self._settings_store.after_restart)

    @property
    def aligned(self) -> QWidget | None:
        """Its control, if it stands beside its words and is no switch."""
        return None if is_wide(self._row) or isinstance(self._row.kind, Toggle) else self._control

    @property
    def has_control_focus(self) -> bool:
        """Whether its control has the focus."""
        return self.window().focusWidget() is self._control

    def _set(self, value: Value) -> None:
        emptied = isinstance(self._row.kind, TextLine) and not value  # an empty line of text means the default
        self._settings_store.set({self._row.key: None if emptied else value})


class GroupCard(QFrame):
    """The settings of one group; hidden while none matches the search."""

    def __init__(self, theme: Theme, group: Group, settings_store: SettingsStore) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        role = "strong" if len(group.rows) > 1 else "heading"  # the title of a single row is that of its card
        self.rows = [SettingRow(theme, setting_row, settings_store, role) for setting_row in group.rows]
        self._rules = [rule() for _ in self.rows]
        self.words = tr(group.title).lower()
        box = column(gap=10, margins=(20, 16, 20, 18))
        if len(group.rows) > 1:
            box.addWidget(text(theme, tr(group.title), "heading"))
            box.addSpacing(4)
        for line, setting_row in zip(self._rules, self.rows, strict=True):
            box.addWidget(line)
            box.addWidget(setting_row)
        self.setLayout(box)

    def filter_rows(self, search_words: Sequence[str]) -> int:
        """Show only rows in which every word occurs; return their number."""
        matches = 0
        for line, setting_row in zip(self._rules, self.rows, strict=True):
            matching = all(word in setting_row.words for word in search_words)
            set_visible(line, matching and matches > 0)
            set_visible(setting_row, matching)
            matches += matching
        set_visible(self, matches > 0)
        return matches


class SectionPane(QWidget):
    """The cards of one section, below its name while several sections are searched; `above` stand before the groups."""

    def __init__(
        self, theme: Theme, section: Section, settings_store: SettingsStore, above: Sequence[tuple[QFrame, str]] = ()
    ) -> None:
        super().__init__()
        self.groups = [GroupCard(theme, group, settings_store) for group in section.groups]
        controls = [setting_row.aligned for setting_row in self.rows]
        controls += [segments for card, _ in above for segments in card.findChildren(SegmentedControl)]
        aligned = [control for control in controls if control is not None]
        width = max((control.sizeHint().width() for control in aligned), default=0)
        for control in aligned:  # one edge for all of them
            control.setFixedWidth(min(theme.px(WIDTH), max(WIDTH, theme.px(SCALED_WIDTH), width)))
        self._others = above
        self._name = text(theme, tr(section.title), "label", "soft")
        self._name.hide()
        self._columns = TwoColumns()
        cards = (*(card for card, _ in above), *self.groups)
        in_first = _half([_height(section, place - len(above)) for place in range(len(cards))])
        self._columns.fill(cards[:in_first], cards[in_first:])
        self.setLayout(column(self._name, self._columns, gap=8))

    @property
    def rows(self) -> list[SettingRow]:
        return [setting_row for group in self.groups for setting_row in group.rows]

    def show_matches(self, search_words: Sequence[str]) -> int:
        """Show only what has every word; return how many settings and other cards have them."""
        matches = sum(group.filter_rows(search_words) for group in self.groups)
        for card, words in self._others:
            matching = all(word in words for word in search_words)
            card.setVisible(matching)
            matches += matching
        self._name.setVisible(bool(search_words))
        return matches

    def show_values(self) -> None:
        for setting_row in self.rows:
            setting_row.show_value()

    def arrange(self, gap: int, *, wide: bool) -> None:
        self._columns.arrange(gap, wide=wide)
        for each in self.rows if wide else ():
            each.unfold()  # there is room


def _height(section: Section, place: int) -> int:
    """About how high a card of the section is, in rows; `place` is that of its group, negative for a card before them."""
    if place < 0:
        return HIGH
    return 1 + sum(HIGH if isinstance(each.kind, WeekHours) else 1 for each in section.groups[place].rows)


def _half(heights: Sequence[int]) -> int:
    """How many of the cards stand in the first of two columns, so that both are about as high."""
    return min(range(1, len(heights) + 1), key=lambda count: abs(sum(heights[:count]) - sum(heights[count:])))
