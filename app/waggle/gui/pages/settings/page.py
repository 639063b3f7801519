"""The page Settings: every setting can be searched, applies at once, and has a way back to its default."""

from collections.abc import Iterator

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QFrame, QWidget

from waggle.core import cuda_download
from waggle.core.settings import Value
from waggle.gui.i18n.formatting import plural, tr
from waggle.gui.i18n.placeholders import engine_placeholder
from waggle.gui.pages.context import PageContext
from waggle.gui.pages.page import Page
from waggle.gui.pages.settings.cuda_download import CudaCard
from waggle.gui.pages.settings.rows import SECTIONS, Section, Setting, is_wide, make_control
from waggle.gui.pages.settings.sent_messages import PrivacyCard
from waggle.gui.state.settings_store import SettingsStore
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.controls.inputs import TextField
from waggle.gui.widgets.controls.usage_profile import UsageProfile
from waggle.gui.widgets.layout import as_widget, card, column, row, rule, set_visible
from waggle.gui.widgets.page_header import header_margins, page_header
from waggle.gui.widgets.painted_widgets import Icon
from waggle.gui.widgets.scroll_area import ScrollArea
from waggle.gui.widgets.text import ElidedLabel, text
from waggle.gui.widgets.two_columns import TwoColumns
from waggle.protocol.state import State

ABOVE = 60  # pixels kept above and below a row that is scrolled to


class SettingRow(QFrame):
    """One row: title, note, control, and a way back while the value is not the default."""

    def __init__(self, theme: Theme, row_of: Setting, settings_store: SettingsStore) -> None:
        super().__init__()
        self.key = row_of.key
        self._row, self._settings_store = row_of, settings_store
        self._control = make_control(theme, row_of)
        self._control.changed.connect(self._set)
        self._reset = Button(theme, "", "link", "undo").with_name(tr("Back to the default: %1").replace("%1", tr(row_of.title)))
        self._reset.clicked.connect(lambda: settings_store.set({row_of.key: None}))
        room = self._reset.sizePolicy()
        room.setRetainSizeWhenHidden(True)
        self._reset.setSizePolicy(room)
        self._later = text(theme, tr("Waits for the engine's next start."), "small", "faint")
        self._note = text(theme, "", "small", "soft", wrap=True)
        words = column(text(theme, tr(row_of.title), "strong", wrap=True), self._note, self._later, gap=2)
        if is_wide(row_of):
            layout = column(row((words, 1), self._reset), self._control, gap=8)
        else:
            layout = column(row((words, 1), 12, self._reset, self._control))
        self.setLayout(layout)
        self.words = f"{tr(row_of.title)} {tr(row_of.note)} {tr(row_of.at_zero)} {row_of.key}".lower()
        self.show_value()

    def take_focus(self) -> None:
        self._control.setFocus(Qt.FocusReason.OtherFocusReason)

    def show_value(self) -> None:
        value = self._settings_store.value(self._row.key)
        self._control.show_value(value)
        note = tr(self._row.note if value or not self._row.at_zero else self._row.at_zero)
        if self._settings_store.far and self._row.far:
            note = f"{note} {tr(self._row.far)}"
        self._note.setText(note)
        self._control.setAccessibleDescription(note)
        set_visible(self._reset, not self._settings_store.is_default(self._row.key))
        set_visible(self._later, self._row.key in self._settings_store.after_restart)

    @property
    def has_control_focus(self) -> bool:
        """Whether its control has the focus."""
        return self.window().focusWidget() is self._control

    def _set(self, value: Value) -> None:
        self._settings_store.set({self._row.key: value})


class SectionCard(QFrame):
    """The settings of one section; hidden while none matches the search."""

    def __init__(self, theme: Theme, part: Section, settings_store: SettingsStore, first: QWidget | None = None) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self.rows = [SettingRow(theme, setting_row, settings_store) for setting_row in part.rows]
        self._rules = [rule() for _ in self.rows]
        self._first = first
        box = column(text(theme, tr(part.title), "heading"), 4, gap=10, margins=(20, 16, 20, 18))
        if first is not None:
            box.addWidget(first)
        for line, setting_row in zip(self._rules, self.rows, strict=True):
            box.addWidget(line)
            box.addWidget(setting_row)
        self.setLayout(box)

    def filter_rows(self, words: str) -> int:
        """Show only rows in which every word occurs; return their number."""
        search_words = words.lower().split()
        matches = 0
        for line, setting_row in zip(self._rules, self.rows, strict=True):
            matching = all(word in setting_row.words for word in search_words)
            set_visible(line, matching and (matches > 0 or (self._first is not None and not search_words)))
            set_visible(setting_row, matching)
            matches += matching
        if self._first is not None:
            set_visible(self._first, not search_words)
        set_visible(self, matches > 0)
        return matches


class SettingsPage(Page):
    """All settings; `show_part` goes to the one with a key."""

    spreads = True

    def __init__(self, context: PageContext) -> None:
        super().__init__(context)
        theme, settings_store = context.theme, context.settings
        self._settings_store = settings_store
        self._line = ElidedLabel(theme, tr("Changes apply at once"), "small", "text_faint")
        self._search = TextField(theme, tr("Find a setting"), tr("Find a setting"))
        self._search.setClearButtonEnabled(True)
        self._search.textChanged.connect(self._find)
        self.profile = UsageProfile(theme)
        self.profile.chosen.connect(settings_store.set)
        self._cards = [SectionCard(theme, part, settings_store, self._profile_row(part)) for part in SECTIONS]
        self.privacy = PrivacyCard(theme)
        self.privacy.commanded.connect(self.commanded)
        pack = cuda_download.shipped_pack()
        offers = cuda_download.fits(pack) and not settings_store.far  # a graphics card is offered on this computer only
        self.cuda = CudaCard(theme, pack, cuda_download.packs_folder()) if offers else None
        self._none = text(theme, "", "body", "soft")
        words = tr("The settings file cannot be used: what stands here is not what it holds. Mend it, or set it aside on Home.")
        self._broken = card(row(Icon(theme, "warn", "bad"), (text(theme, words, "body", wrap=True), 1)), pad=16)
        self._broken.hide()
        if self.cuda is not None:
            self.cuda.hide()
        first = self._cards[:2] if self.cuda is None else [*self._cards[:2], self.cuda]
        self._columns = TwoColumns()
        self._box = column(self._broken, self._columns, self._none, None, gap=16)
        self._area = ScrollArea(self._box)
        self._head = page_header(theme, tr("Settings"), self._line, self._search)
        self.setLayout(column(self._head, (self._area, 1), gap=0))
        self._columns.fill(first, [self._cards[2], self.privacy, *self._cards[3:]])
        settings_store.changed.connect(self._show_values)
        self._find("")
        self.set_compact(False)

    def _profile_row(self, part: Section) -> QWidget | None:
        if part.name != "how_much":
            return None
        words, self._unknown = text(self.theme, tr("Profile"), "strong"), text(self.theme, "", "small", "faint")
        return as_widget(row(words, None, self._unknown, self.profile))

    def take_over(self, before: Page) -> None:
        """Take over the search, the scroll position and the focused control."""
        assert isinstance(before, SettingsPage)
        self._search.setText(before._search.text())
        self._area.scroll_like(before._area)
        for mine, other in zip(self._rows(), before._rows(), strict=True):
            if other.has_control_focus:
                mine.take_focus()
                self._area.ensureWidgetVisible(mine, 0, 0)
        if self.cuda is not None and before.cuda is not None:
            self.cuda.take_over(before.cuda)

    def _rows(self) -> Iterator[SettingRow]:
        return (setting_row for part in self._cards for setting_row in part.rows)

    def go_to_search(self) -> None:
        self._search.setFocus()

    def arrange(self, edge: int, gap: int) -> None:
        self._head.setContentsMargins(*header_margins(edge, compact=self.compact, below=gap))
        self._area.set_edges(edge, edge)
        self._box.setSpacing(gap)
        self._columns.arrange(gap, wide=self.wide)

    def show_state(self, state: State, now: float) -> None:
        broken = state.phase == "problem" and self._settings_store.is_unreadable
        self._broken.setVisible(broken)
        self._line.setVisible(not broken)  # it says that changes apply at once
        for part in self._cards:
            part.setEnabled(not broken)
        cores = state.ready.cores if state.ready else 0
        unknown = self._settings_store.far and not cores  # a profile is a share of the other computer's cores
        self._unknown.setText(engine_placeholder(state))
        self._unknown.setVisible(unknown)
        self.profile.setVisible(not unknown)
        self.profile.show_settings(self._settings_store.settings, cores)
        self.privacy.show_state(state)

    def show_part(self, part: str) -> None:
        """Scroll to the row of the setting with this key and focus its control."""
        self._search.clear()
        target = next(setting_row for setting_row in self._rows() if setting_row.key == part)
        target.take_focus()
        QTimer.singleShot(0, target, lambda: self._area.ensureWidgetVisible(target, 0, ABOVE))  # after the layout

    def _show_values(self) -> None:
        for setting_row in self._rows():
            setting_row.show_value()

    def _find(self, words: str) -> None:
        matches = sum(part.filter_rows(words) for part in self._cards)
        search_words = words.lower().split()
        set_visible(self.privacy, all(word in self.privacy.words for word in search_words))
        matches += bool(search_words) and not self.privacy.isHidden()
        if self.cuda is not None and self.cuda.is_offered:
            self.cuda.setVisible(all(word in self.cuda.words for word in search_words))
            matches += bool(search_words) and not self.cuda.isHidden()
        self._line.say(plural(matches, "%n setting", "%n settings") if search_words else tr("Changes apply at once"))
        self._none.setVisible(not matches)
        self._none.setText(tr("No setting has these words."))
