"""The sections of Settings: every setting is in one of them, with its meaning, its default and a way back to it."""

from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from gui.conftest import TellWindow
from waggle.core import settings
from waggle.core.settings import Settings
from waggle.gui.i18n import translator
from waggle.gui.i18n.formatting import tr
from waggle.gui.pages.context import PageContext
from waggle.gui.pages.settings.page import SettingsPage
from waggle.gui.pages.settings.rows import SECTIONS
from waggle.gui.pages.settings.value_words import default_words, value_words
from waggle.gui.state.settings_store import SettingsStore
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.inputs import ComboBox, NumberField

CHOSEN_ELSEWHERE = {"model.folder", "model.name", "swarm.charter"}  # on the pages Models and Swarms
KEPT_BY_THE_WINDOW = {"window.welcomed"}
ROWS = {row.key: row for section in SECTIONS for row in section.rows}


@pytest.fixture
def page(theme: Theme, qtbot: QtBot, tmp_path: Path) -> SettingsPage:
    settings_page = SettingsPage(PageContext(theme, settings=SettingsStore(tmp_path / "settings.toml")))
    qtbot.addWidget(settings_page)
    settings_page.resize(1000, 800)
    return settings_page


def visible_sections(page: SettingsPage) -> list[str]:
    return [name for name, pane in page._panes.items() if not pane.isHidden()]


def test_every_setting_that_a_person_may_change_is_in_one_section() -> None:
    names = {
        f"{part.name}.{field.name}"
        for part in msgspec.structs.fields(Settings)
        for field in msgspec.structs.fields(type(part.default))
    }
    keys = [row.key for section in SECTIONS for row in section.rows]
    assert len(keys) == len(set(keys))
    assert set(keys) == names - CHOSEN_ELSEWHERE - KEPT_BY_THE_WINDOW
    assert all(row.note.endswith(".") for row in ROWS.values()), "each says what it means"


@pytest.mark.parametrize("spoken", ["en", "de"])
def test_a_default_is_said_as_its_control_shows_it(page: SettingsPage, theme: Theme, qtbot: QtBot, spoken: str) -> None:
    translator.use(spoken)  # type: ignore[arg-type]
    translated = SettingsPage(PageContext(theme, settings=SettingsStore(None)))
    qtbot.addWidget(translated)
    for setting_row in translated._rows():
        control, row = setting_row._control, ROWS[setting_row.key]
        if isinstance(control, NumberField):
            assert default_words(row) == control.text()
        elif isinstance(control, ComboBox) and row.key != "window.less_motion":  # which says what the system does not tell
            assert default_words(row) == control.currentText()
        assert default_words(row) in control.accessibleDescription()


def test_a_changed_setting_shows_its_default_and_a_way_back(page: SettingsPage) -> None:
    page.show_part("when.below_celsius")
    row = next(row for row in page._rows() if row.key == "when.below_celsius")
    assert (row._default.isHidden(), row._reset.isHidden()) == (True, True)
    page._settings_store.set({"when.below_celsius": 70})
    assert (row._default.text(), row._default.isHidden()) == ("Default: 85 °C", False)
    assert row._reset.accessibleName() == "Reset Pause when the processor is hot to: 85 °C"
    row._reset.click()
    assert page._settings_store.value("when.below_celsius") == 85
    assert row._default.isHidden()


def test_an_emptied_line_is_the_default_again(page: SettingsPage) -> None:
    row = next(row for row in page._rows() if row.key == "web.host")
    row._set("0.0.0.0")
    assert page._settings_store.value("web.host") == "0.0.0.0"
    row._set("")
    assert page._settings_store.value("web.host") == "127.0.0.1"


def test_values_are_words() -> None:
    for key, value, words in (
        ("when.only_on_power", True, "On"), ("computer.priority", "low", "Low"), ("computer.cpu_percent", 50, "50%"),
        ("computer.memory_gb", 0.0, "As needed"), ("computer.memory_gb", 7.5, "7.5 GB"), ("swarm.seeds", (), "Empty"),
        ("when.not_while", ("steam", "blender"), "steam, blender"), ("when.week", (), "All hours"),
        ("learning.rule", "dr_grpo", "Dr. GRPO"),
    ):  # fmt: skip
        assert value_words(ROWS[key], value) == words, key
        assert value_words(ROWS[key], settings.value_of(Settings(), key)) == default_words(ROWS[key])


def test_one_section_is_shown_and_only_that_was_built(page: SettingsPage) -> None:
    assert (visible_sections(page), list(page._panes)) == (["when"], ["when"])
    page._sections.button("learning").click()
    assert visible_sections(page) == ["learning"]
    page.show_part("network")
    assert (visible_sections(page), page._sections.button("network").isChecked()) == (["network"], True)


@pytest.mark.qt_log_ignore("does not support")  # the platform without a screen says so of a window
def test_arrow_keys_go_through_the_sections_and_tab_stops_there_once(page: SettingsPage, qtbot: QtBot) -> None:
    page.show()
    page.activateWindow()
    first = page._sections.button("when")
    assert QAccessible.queryAccessibleInterface(first).role() == QAccessible.Role.RadioButton, "one of several"
    first.setFocus()
    qtbot.waitUntil(first.hasFocus)
    qtbot.keyClick(first, Qt.Key.Key_Down)
    assert visible_sections(page) == ["how_much"]
    qtbot.keyClick(page._sections.button("how_much"), Qt.Key.Key_Tab)
    focused = page.focusWidget()
    assert focused is not None
    assert not page._sections.isAncestorOf(focused)


def test_a_search_goes_through_all_sections_and_ends_in_the_chosen_one(page: SettingsPage) -> None:
    page.show_part("appearance")
    page._search.setText("answers")
    matching = {row.key for row in page._rows() if not row.isHidden()}
    assert {"swarm.my_answers", "learning.group_size"} <= matching
    assert {"network", "learning"} <= set(visible_sections(page))
    assert not page._sections.button("appearance").isChecked()
    page._search.clear()
    assert (visible_sections(page), page._sections.button("appearance").isChecked()) == (["appearance"], True)
    page._search.setText("answers")
    page._sections.button("notifications").click()
    assert (page._search.text(), visible_sections(page)) == ("", ["notifications"])


@pytest.mark.qt_log_ignore("does not support")  # the platform without a screen says so of a window
def test_a_narrow_page_has_a_box_in_place_of_the_list(page: SettingsPage, qapp: QApplication) -> None:
    page.show()
    page.resize(1000, 600)
    qapp.processEvents()
    assert (page._sections.isVisible(), page._sections.jump.isVisible()) == (True, False)
    page.resize(640, 600)
    qapp.processEvents()
    assert (page._sections.isVisible(), page._sections.jump.isVisible()) == (False, True)
    page._sections.jump.activated.emit(5)
    assert (visible_sections(page), page._sections.jump.currentText()) == (["learning"], tr("Learning and tests"))


def test_a_setting_opens_its_section(window_told: TellWindow) -> None:
    window = window_told([])
    window.requests.page.emit("settings", "model.prompt_form")
    page = window.pages.of(SettingsPage)
    assert visible_sections(page) == ["learning"]
    assert [row.key for row in page._rows() if row.has_control_focus] == ["model.prompt_form"]


def test_the_learning_settings_are_found_together() -> None:
    (learning,) = (section for section in SECTIONS if section.name == "learning")
    keys = {row.key for row in learning.rows}
    assert keys >= {key for key in ROWS if key.startswith("learning.")}
