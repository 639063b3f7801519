"""The page Settings: sections beside each other in a list; every setting can be searched, applies at once, and can be reset."""

from collections.abc import Iterator

from PySide6.QtCore import QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame

from waggle.core import cuda_download
from waggle.gui.i18n.formatting import plural, tr
from waggle.gui.i18n.placeholders import engine_placeholder
from waggle.gui.pages.context import PageContext
from waggle.gui.pages.page import Page
from waggle.gui.pages.settings.cards import SectionPane, SettingRow
from waggle.gui.pages.settings.cuda_download import CudaCard
from waggle.gui.pages.settings.rows import ADVANCED, HOW_MUCH, NETWORK, SECTIONS
from waggle.gui.pages.settings.sent_messages import PrivacyCard
from waggle.gui.widgets.containers.page_header import header_margins, page_header
from waggle.gui.widgets.containers.scroll_area import ScrollArea
from waggle.gui.widgets.containers.section_list import SectionList
from waggle.gui.widgets.controls.inputs import TextField
from waggle.gui.widgets.controls.usage_profile import UsageProfile
from waggle.gui.widgets.layout import card, column, edges, row
from waggle.gui.widgets.painted_widgets import Icon
from waggle.gui.widgets.text import ElidedLabel, text
from waggle.protocol.state import State

ABOVE = 60  # pixels kept above and below a row that is scrolled to
BESIDE = 720  # pixels at a text size of 100%: in a narrower page, the list of sections is a box above them
BETWEEN = 24  # pixels between the list and the cards
SECTION_OF = {setting.key: section.name for section in SECTIONS for setting in section.rows}


class SettingsPage(Page):
    """All settings, a section at a time; each section is built when it is first shown."""

    wide_from = 1400

    def __init__(self, context: PageContext) -> None:
        super().__init__(context)
        theme, settings_store = context.theme, context.settings
        self._settings_store = settings_store
        self._section, self._is_broken, self._edge, self._gap = SECTIONS[0].name, False, 0, 0
        self._line = ElidedLabel(theme, tr("Changes take effect immediately"), "small", "text_faint")
        self._search = TextField(theme, tr("Find a setting"), tr("Find a setting"))
        self._search.setClearButtonEnabled(True)
        self._search.textChanged.connect(self._find)
        self.profile = UsageProfile(theme)
        self.profile.chosen.connect(settings_store.set)
        self._state = State()
        self.privacy: PrivacyCard | None = None  # until its section is shown
        pack = cuda_download.shipped_pack()
        offers = cuda_download.fits(pack) and not settings_store.far  # a graphics card is offered on this computer only
        self.cuda = CudaCard(theme, pack, cuda_download.packs_folder()) if offers else None
        self._profile_card = self._make_profile_card()
        self._panes: dict[str, SectionPane] = {}
        self._sections = SectionList(
            theme, [part.name for part in SECTIONS], [tr(part.title) for part in SECTIONS], tr("Sections of the settings")
        )
        self._sections.chosen.connect(self._go_to)
        self._none = text(theme, "", "body", "soft")
        words = tr("The settings file cannot be used: what stands here is not what it holds. Mend it, or set it aside on Home.")
        self._broken = card(row(Icon(theme, "warn", "bad"), (text(theme, words, "body", wrap=True), 1)), pad=16)
        self._broken.hide()
        self._box = column(self._broken, self._none, None, gap=16)
        self._area = ScrollArea(self._box)
        self._head = page_header(theme, tr("Settings"), self._line, self._search)
        self._body = row(self._sections, (self._area, 1), gap=0)
        self._jump = row((self._sections.jump, 1), None)
        self.setLayout(column(self._head, self._jump, (self._body, 1), gap=0))
        settings_store.changed.connect(self._show_values)
        self._show_section(self._section)
        self.set_compact(False)

    def _make_profile_card(self) -> QFrame:
        about = text(
            self.theme, tr("Sets the processors below and the conditions under When to train."), "small", "soft", wrap=True
        )
        self._unknown = text(self.theme, "", "small", "faint")
        words = column(text(self.theme, tr("Profile"), "heading"), about, gap=2)
        return card(row((words, 1), self._unknown, self.profile))

    def _pane(self, name: str) -> SectionPane:
        """The cards of a section; builds them if necessary."""
        if name not in self._panes:
            section = next(part for part in SECTIONS if part.name == name)
            above = list[tuple[QFrame, str]]()
            if section is HOW_MUCH:
                above.append(
                    (
                        self._profile_card,
                        f"{tr('Profile')} {tr('Sets the processors below and the conditions under When to train.')}".lower(),
                    )
                )
            elif section is NETWORK:
                self.privacy = PrivacyCard(self.theme)
                self.privacy.commanded.connect(self.commanded)
                self.privacy.show_state(self._state)
                above.append((self.privacy, self.privacy.words))
            elif section is ADVANCED and self.cuda is not None and self.cuda.is_offered:
                above.append((self.cuda, self.cuda.words))
            self._panes[name] = pane = SectionPane(self.theme, section, self._settings_store, above)
            before = [part.name for part in SECTIONS if part.name in self._panes].index(name)
            self._box.insertWidget(1 + before, pane)  # below the word about a broken file
            pane.arrange(self._gap, wide=self.wide)
            self._open_or_close(pane)
        return self._panes[name]

    def _all_panes(self) -> list[SectionPane]:
        return [self._pane(part.name) for part in SECTIONS]

    def _rows(self) -> Iterator[SettingRow]:
        return (setting_row for pane in self._all_panes() for setting_row in pane.rows)

    def take_over(self, before: Page) -> None:
        """Take over the section, the search, the scroll position and the focused control."""
        assert isinstance(before, SettingsPage)
        self._show_section(before._section)
        self._search.setText(before._search.text())
        self._area.scroll_like(before._area)
        for name, pane in before._panes.items():
            for mine, other in zip(self._pane(name).rows, pane.rows, strict=True):
                if other.has_control_focus:
                    mine.take_focus()
                    self._area.ensureWidgetVisible(mine, 0, 0)
        if self.cuda is not None and before.cuda is not None:
            self.cuda.take_over(before.cuda)
        self._find(self._search.text())

    def go_to_search(self) -> None:
        self._search.setFocus()

    def arrange(self, edge: int, gap: int) -> None:
        self._head.setContentsMargins(*header_margins(edge, compact=self.compact, below=gap))
        self._box.setSpacing(gap)
        self._gap = gap
        for pane in self._panes.values():
            pane.arrange(gap, wide=self.wide)
        self._edge = edge
        self._place_list()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_list()

    def _place_list(self) -> None:
        """Beside the cards if there is room."""
        edge, beside = self._edge, self.width() >= self.theme.px(BESIDE)
        self._sections.setVisible(beside)
        self._sections.jump.setVisible(not beside)
        self._body.setContentsMargins(*edges(edge if beside else 0, 0, 0, 0))
        self._jump.setContentsMargins(edge, 0, edge, 0 if beside else self._gap)
        self._area.set_edges(edge, edge, before=BETWEEN if beside else None)

    def show_state(self, state: State, now: float) -> None:
        self._state = state
        broken = state.phase == "problem" and self._settings_store.is_unreadable
        self._broken.setVisible(broken)
        self._line.setVisible(not broken)  # it says that changes apply at once
        if broken != self._is_broken:
            self._is_broken = broken
            for pane in self._panes.values():
                self._open_or_close(pane)
        cores = state.ready.cores if state.ready else 0
        unknown = self._settings_store.far and not cores  # a profile is a share of the other computer's cores
        self._unknown.setText(engine_placeholder(state))
        self._unknown.setVisible(unknown)
        self.profile.setVisible(not unknown)
        self.profile.show_settings(self._settings_store.settings, cores)
        if self.privacy is not None:
            self.privacy.show_state(state)

    def _open_or_close(self, pane: SectionPane) -> None:
        for group in pane.groups:
            group.setEnabled(not self._is_broken)
        self._profile_card.setEnabled(not self._is_broken)

    def show_part(self, part: str) -> None:
        """Show a section by its name, or the row of the setting with this key, and focus its control."""
        self._search.clear()
        if part not in SECTION_OF:
            self._go_to(part)
            return
        self._show_section(SECTION_OF[part])
        target = next(setting_row for setting_row in self._pane(self._section).rows if setting_row.key == part)
        target.take_focus()
        QTimer.singleShot(0, target, lambda: self._area.ensureWidgetVisible(target, 0, ABOVE))  # after the layout

    def _go_to(self, name: str) -> None:
        """Show another section from its beginning; a search ends."""
        self._section = name
        self._search.clear()
        self._show_section(name)
        self._area.verticalScrollBar().setValue(0)

    def _show_section(self, name: str) -> None:
        self._section = name
        self._pane(name)
        self._find(self._search.text())

    def _show_values(self) -> None:
        for pane in self._panes.values():
            pane.show_values()

    def _find(self, words: str) -> None:
        """Show all that has these words; without any, the chosen section."""
        search_words = words.lower().split()
        if not search_words:
            for name, pane in self._panes.items():
                pane.setVisible(name == self._section)
                pane.show_matches(())
            matches = 1
        else:
            counts = [(pane, pane.show_matches(search_words)) for pane in self._all_panes()]
            for pane, count in counts:
                pane.setVisible(count > 0)
            matches = sum(count for _, count in counts)
        self._sections.mark("" if search_words else self._section)
        self._line.say(plural(matches, "%n setting", "%n settings") if search_words else tr("Changes take effect immediately"))
        self._none.setVisible(not matches)
        self._none.setText(tr("No setting has these words."))
