"""Contrast of every ink on every background (WCAG 2 ratios), and switching the theme live."""

import os
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from waggle.core import paths
from waggle.gui.pages.settings.rows import SECTIONS, make_control
from waggle.gui.theme import reduced_motion
from waggle.gui.theme.theme import Theme, ThemeName, load_fonts, tokens
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.controls.inputs import ComboBox

GROUNDS = ("window", "rail", "surface", "sunken")
TINTED = ("accent_soft", "peer_soft", "match", "match_peer", "chosen")
INKS = ("text", "text_soft", "text_faint", "accent_text", "good", "bad", "peer")
FLOORS = [
    *((ink, GROUNDS, 4.5) for ink in INKS),
    ("on_accent", ("accent", "accent_hover"), 4.5),
    ("text", TINTED, 4.5),
    ("text_faint", ("accent_soft", "match", "match_peer")[:1], 4.5),
    *((ink, (ink.removesuffix("_text") + "_soft",), 4.5) for ink in ("accent_text", "good", "bad", "peer")),
    *((mark, ("surface",), 3.0) for mark in ("accent_line", "peer", "reference", "control", "focus")),
    ("control", ("window", "sunken"), 3.0),
    ("focus", ("rail", "window"), 3.0),
    ("focus_on_accent", ("accent", "accent_hover"), 3.0),
]


def luminance(code: str) -> float:
    parts = (int(code[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def ratio(first: str, other: str) -> float:
    bright, dark = sorted((luminance(first), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def test_white_on_black_is_21_to_1() -> None:
    assert ratio("#FFFFFF", "#000000") == pytest.approx(21.0)


@pytest.mark.parametrize("mode", ["light", "dark", "high_contrast"])
@pytest.mark.parametrize(("ink", "grounds", "floor"), FLOORS)
def test_ink_can_be_read_on_its_grounds(mode: str, ink: str, grounds: tuple[str, ...], floor: float) -> None:
    colours = tokens().colour[mode]  # type: ignore[index]
    for ground in grounds:
        assert ratio(colours[ink], colours[ground]) >= floor, f"{ink} on {ground}"


def test_all_themes_name_the_same_roles() -> None:
    light, dark, high = (set(tokens().colour[mode]) for mode in ("light", "dark", "high_contrast"))
    assert light == dark == high


def test_fonts_that_ship_are_found(qapp: QApplication) -> None:
    assert {"Inter", "Inter Display", "JetBrains Mono"} <= set(load_fonts())


def test_fonts_stay_small() -> None:
    files = (paths.resources() / "look" / "fonts").iterdir()
    assert sum(file.stat().st_size for file in files) < 4_000_000


def test_every_icon_can_be_drawn(theme: Theme) -> None:
    for path in (paths.resources() / "look" / "icons").glob("*.svg"):
        picture = theme.icon(path.stem, "text").pixmap(20, 20).toImage()
        assert any(picture.pixelColor(x, y).alpha() for x in range(20) for y in range(20)), path.stem


def test_a_theme_is_switched_live(theme: Theme, qapp: QApplication) -> None:
    changes: list[str] = []
    theme.changed.connect(lambda: changes.append(theme.mode))
    theme.use("dark")
    assert changes == ["dark"]
    assert qapp.palette().window().color() == theme.colour("window")
    assert theme.colour("window").lightness() < 60
    theme.use("light")


def test_style_sheet_has_no_hole(theme: Theme) -> None:
    assert "$" not in theme.style_sheet()


@pytest.mark.parametrize("mode", ["light", "dark", "high_contrast"])
def test_the_primary_button_that_has_the_focus_has_a_ring_in_its_own_fill(theme: Theme, qtbot: QtBot, mode: ThemeName) -> None:
    theme.use(mode)
    button = Button(theme, "Pause", "primary")
    qtbot.addWidget(button)
    button.show()
    button.clearFocus()
    without = button.grab().toImage()
    button.setFocus()
    qtbot.waitUntil(button.hasFocus)
    qtbot.keyClick(button, Qt.Key.Key_A)
    image = button.grab().toImage()
    x, y = 4, button.height() // 2  # on the ring, and beside it on either side
    assert without.pixelColor(x, y) == theme.colour("accent")
    assert image.pixelColor(x, y) == theme.colour("focus_on_accent")
    assert image.pixelColor(x - 3, y) == image.pixelColor(x + 3, y) == theme.colour("accent")
    theme.use("light")


@pytest.mark.parametrize("kind", ["primary", "plain"])
def test_the_focus_of_a_button_shows_once_the_keyboard_is_used(theme: Theme, qtbot: QtBot, kind: str) -> None:
    """A page gives it to a button for the keyboard: with the mouse alone, a black frame around it would say something else."""
    button = Button(theme, "Not now", kind)
    qtbot.addWidget(button)
    button.show()
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    button.clearFocus()
    without = button.grab().toImage()
    button.setFocus()
    qtbot.waitUntil(button.hasFocus)
    assert button.grab().toImage() == without
    qtbot.keyClick(button, Qt.Key.Key_A)
    assert button.grab().toImage() != without
    button.clearFocus()
    button.setFocus()
    assert button.grab().toImage() != without, "a page gave it the focus after a key"


class System(QObject):
    """Fake style hints of a system whose colour scheme the test sets."""

    colorSchemeChanged = Signal(object)  # noqa: N815
    contrastPreferenceChanged = Signal(object)  # noqa: N815

    def __init__(self, scheme: Qt.ColorScheme, contrast: Qt.ContrastPreference) -> None:
        super().__init__()
        self.own = self.scheme = scheme
        self.contrast = contrast

    def accessibility(self) -> "System":
        return self

    def contrastPreference(self) -> Qt.ContrastPreference:
        return self.contrast

    def colorScheme(self) -> Qt.ColorScheme:
        return self.scheme

    def setColorScheme(self, scheme: Qt.ColorScheme) -> None:
        changed, self.scheme = scheme != self.scheme, scheme
        if changed:
            self.colorSchemeChanged.emit(scheme)

    def unsetColorScheme(self) -> None:
        self.setColorScheme(self.own)


def test_a_chosen_theme_is_asked_of_the_systems_own_parts_and_given_back(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = System(Qt.ColorScheme.Light, Qt.ContrastPreference.NoPreference)
    monkeypatch.setattr(QGuiApplication, "styleHints", lambda: system)
    theme = Theme("system")
    assert theme.mode == "light"
    theme.use("dark")
    assert (theme.name, theme.mode, system.scheme) == ("dark", "dark", Qt.ColorScheme.Dark)
    theme.use("system")
    assert (theme.mode, system.scheme) == ("light", Qt.ColorScheme.Light)
    system.own = Qt.ColorScheme.Dark
    system.unsetColorScheme()
    assert theme.mode == "dark", "the system became dark"
    system.contrast = Qt.ContrastPreference.HighContrast
    system.contrastPreferenceChanged.emit(system.contrast)
    assert theme.mode == "high_contrast"
    theme.use("light")
    assert system.scheme == Qt.ColorScheme.Light


@pytest.mark.parametrize(
    ("answers", "unwanted"),
    [(["v v b false", ""], True), (["v v b true", ""], False), (["", 'v v s "0"'], True), (["v v b true", 'v v s "1"'], False),
     (["", ""], None)],
)  # fmt: skip
def test_less_motion_is_what_the_desktop_says(answers: list[str], unwanted: bool | None) -> None:
    assert reduced_motion.combine_answers(answers) is unwanted


@pytest.mark.skipif(sys.platform == "win32", reason="the desktop of Linux answers by a script")
def test_the_window_does_not_wait_for_what_the_desktop_says(
    theme: Theme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """The answer comes late: the desktop program blocks until the test lets it go on."""
    bus, may = tmp_path / "busctl", tmp_path / "may"
    os.mkfifo(may)
    door = os.open(may, os.O_RDWR)
    request.addfinalizer(lambda: os.close(door))
    bus.write_text(f"#!/bin/sh\nread go < {may}\necho v v b false\n")
    bus.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(reduced_motion, "SECONDS", 10.0)
    request.addfinalizer(reduced_motion._system_setting.cache_clear)
    reduced_motion._system_setting.cache_clear()
    assert theme.moves
    os.write(door, b"go\n" * len(reduced_motion.NO_MOTION_ANSWERS))
    reduced_motion._system_setting().result(timeout=10)
    assert not theme.moves


@pytest.mark.skipif(sys.platform == "win32", reason="the desktop of Linux answers by a script")
@pytest.mark.parametrize(
    ("answer", "moves", "words"), [("v v b false", False, "System default"), ("", True, "System default (off)")]
)
def test_motion_as_the_system_is_as_the_system(
    theme: Theme, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest,
    answer: str, moves: bool, words: str,
) -> None:  # fmt: skip
    bus = tmp_path / "busctl"
    bus.write_text(f"#!/bin/sh\ncase \"$*\" in *enable-animations) echo '{answer}';; esac\n")
    bus.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(reduced_motion, "SECONDS", 10.0)
    request.addfinalizer(reduced_motion._system_setting.cache_clear)
    reduced_motion._system_setting.cache_clear()
    reduced_motion._system_setting().result(timeout=10)
    assert theme.moves == moves
    row = next(row for part in SECTIONS for row in part.rows if row.key == "window.less_motion")
    picker = make_control(theme, row)
    qtbot.addWidget(picker)
    assert isinstance(picker, ComboBox)
    picker.show_value("system")
    assert picker.currentText().startswith(words)


def test_an_icon_is_drawn_once_for_each_theme_and_ink(theme: Theme) -> None:
    light = theme.icon("pause", "text")
    assert theme.icon("pause", "text").cacheKey() == light.cacheKey()
    theme.use("dark")
    others = [theme.icon("pause", "text"), theme.icon("pause", "accent"), theme.icon("play", "text")]
    images = [icon.pixmap(20, 20).toImage() for icon in (light, *others)]
    theme.use("light")
    assert all(image != other for i, image in enumerate(images) for other in images[:i])
