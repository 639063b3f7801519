"""Turns the design tokens into palette, style sheet, fonts and tinted icons: one theme for the whole window, switched live."""

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from string import Template
from typing import Literal

import msgspec
from PySide6.QtCore import QByteArray, QObject, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QIcon, QPainter, QPalette, QPixmap, QStyleHints
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication

from waggle.core import paths
from waggle.gui.i18n.translator import is_right_to_left
from waggle.gui.theme import reduced_motion

Mode = Literal["light", "dark", "high_contrast"]
ThemeName = Literal["light", "dark", "high_contrast", "system"]
LessMotion = Literal["system", "on", "off"]

PALETTE = {
    "Window": "window", "WindowText": "text", "Base": "surface", "AlternateBase": "sunken", "Text": "text",
    "Button": "surface", "ButtonText": "text", "BrightText": "bad", "Highlight": "accent_soft",
    "HighlightedText": "text", "ToolTipBase": "text", "ToolTipText": "surface", "PlaceholderText": "text_faint",
    "Link": "accent_text", "LinkVisited": "accent_text", "Light": "surface", "Mid": "border", "Dark": "control",
}  # fmt: skip


class TypeRole(msgspec.Struct, frozen=True):
    """A font: `size` in logical pixels, `tracking` (letter spacing) in percent of it."""

    family: str
    size: int
    weight: int
    tracking: float
    tabular: bool


class DesignTokens(msgspec.Struct, frozen=True):
    """The design tokens, as in tokens.toml."""

    colour: dict[Mode, dict[str, str]]
    family: dict[str, list[str]]
    type: dict[str, TypeRole]
    space: dict[str, int]
    radius: dict[str, int]
    size: dict[str, int]
    duration: dict[str, int]


@cache
def tokens() -> DesignTokens:
    """The tokens of resources/look/tokens.toml, read once; raises msgspec.ValidationError if the file lacks any."""
    return msgspec.convert(tomllib.loads((paths.resources() / "look" / "tokens.toml").read_text(encoding="utf-8")), DesignTokens)


@cache
def load_fonts() -> tuple[str, ...]:
    """Register the fonts that ship with Waggle; returns their families."""
    families: list[str] = []
    for path in sorted((paths.resources() / "look" / "fonts").glob("*.[ot]tf")):
        families += QFontDatabase.applicationFontFamilies(QFontDatabase.addApplicationFont(str(path)))
    return tuple(families)


@cache
def _svg_text(name: str) -> str:
    return (paths.resources() / "look" / "icons" / f"{name}.svg").read_text(encoding="utf-8")


@cache
def _renderer(name: str, colour: str) -> QSvgRenderer:
    return QSvgRenderer(QByteArray(_svg_text(name).replace("currentColor", colour).encode()))


SCHEMES: dict[Mode, Qt.ColorScheme] = {
    "light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark, "high_contrast": Qt.ColorScheme.Dark,
}  # fmt: skip


def _system_mode(hints: QStyleHints) -> Mode:
    if hints.accessibility().contrastPreference() == Qt.ContrastPreference.HighContrast:
        return "high_contrast"
    return "dark" if hints.colorScheme() == Qt.ColorScheme.Dark else "light"


def _mode(name: ThemeName) -> Mode:
    """The mode of a theme now; also sets the colour scheme of system parts such as title bars and file dialogs."""
    hints = QGuiApplication.styleHints()
    if name == "system":
        hints.unsetColorScheme()
        return _system_mode(hints)
    hints.setColorScheme(SCHEMES[name])
    return name


class Theme(QObject):
    """The theme in use: colours, fonts and sizes by role; widgets contain none of their own."""

    changed = Signal()

    def __init__(self, name: ThemeName = "system", parent: QObject | None = None, *, text_percent: int = 100) -> None:
        super().__init__(parent)
        self.name: ThemeName = name
        self.mode: Mode = _mode(name)
        self.space = tokens().space
        self.less_motion: LessMotion = "system"
        self._fonts: dict[str, QFont] = {}
        self._icons: dict[tuple[object, ...], QIcon] = {}
        self.set_text(text_percent)
        load_fonts()
        hints = QGuiApplication.styleHints()
        hints.colorSchemeChanged.connect(self._follow_system)
        hints.accessibility().contrastPreferenceChanged.connect(self._follow_system)

    def use(self, name: ThemeName) -> None:
        """Switch the whole window to a theme, at once."""
        self.name = name  # first: setting a scheme fires the signal of a system change
        self.mode = _mode(name)
        self.apply()
        self.changed.emit()

    def set_text(self, percent: int) -> None:
        """Set the text size in percent, and the sizes that depend on it; a window on screen has to be built again."""
        self._scale = percent / 100
        self.size = {name: self.px(size) for name, size in tokens().size.items()}
        self._fonts.clear()

    def px(self, size: float) -> int:
        """Scale a size in logical pixels with the text size."""
        return round(size * self._scale)

    @property
    def moves(self) -> bool:
        """Whether animations may run."""
        return not reduced_motion.is_reduced() if self.less_motion == "system" else self.less_motion == "off"

    def apply(self) -> None:
        """Apply palette, font and style sheet to the application."""
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        app.setPalette(self.palette())
        app.setFont(self.font("body"))
        sheet = self.style_sheet()
        if app.styleSheet() != sheet:  # setting it restyles every widget
            _set_style_sheet(app, sheet)

    def colour(self, role: str) -> QColor:
        value = tokens().colour[self.mode][role]
        if len(value) == 9:  # tokens have #RRGGBBAA, Qt reads #AARRGGBB
            value = "#" + value[7:] + value[1:7]
        return QColor(value)

    def font(self, role: str) -> QFont:
        if role not in self._fonts:
            self._fonts[role] = _font(tokens().type[role], self._scale)
        return self._fonts[role]

    def draw_icon(self, painter: QPainter, name: str, role: str, place: QRectF) -> None:
        """Paint an icon as vectors, sharp at every scale."""
        _renderer(name, self.colour(role).name()).render(painter, place)

    def icon(self, name: str, role: str, size: int = 20, gap: int = 0) -> QIcon:
        """An icon, cached: it consists of six pixmaps. `gap` widens the space to the text, which Qt fixes at 4 px."""
        key = (self.mode, is_right_to_left(), name, role, size, gap)
        if key not in self._icons:
            self._icons[key] = self._drawn_icon(name, role, size, gap)
        return self._icons[key]

    def _drawn_icon(self, name: str, role: str, size: int, gap: int) -> QIcon:
        icon = QIcon()
        for scale in (1, 2, 3):
            for mode, ink in ((QIcon.Mode.Normal, role), (QIcon.Mode.Disabled, "text_faint")):
                canvas = QPixmap((size + gap) * scale, size * scale)
                canvas.fill(Qt.GlobalColor.transparent)
                painter = QPainter(canvas)
                self.draw_icon(
                    painter, name, ink, QRectF(gap * scale if is_right_to_left() else 0, 0, size * scale, size * scale)
                )
                painter.end()
                canvas.setDevicePixelRatio(scale)
                icon.addPixmap(canvas, mode)
        return icon

    def palette(self) -> QPalette:
        palette = QPalette()
        for role, token in PALETTE.items():
            palette.setColor(getattr(QPalette.ColorRole, role), self.colour(token))
        return palette

    def style_sheet(self) -> str:
        values = {role: self.colour(role).name() for role in tokens().colour[self.mode]}
        values |= {f"radius_{name}": str(value) for name, value in tokens().radius.items()}
        values["icon_check"] = (paths.resources() / "look" / "icons" / "tick.svg").as_posix()
        return Template((paths.resources() / "look" / "waggle.qss").read_text(encoding="utf-8")).substitute(values)

    def _follow_system(self) -> None:
        if self.name == "system" and self.mode != _system_mode(QGuiApplication.styleHints()):
            self.use("system")


@contextmanager
def suspend_style_sheet() -> Iterator[None]:
    """Remove the style sheet while a window is built: with one, Qt restyles each widget for every parent it is put into.

    Does nothing if a window is on screen, which would be restyled twice.
    """
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    if any(widget.isVisible() for widget in app.topLevelWidgets()):
        yield
        return
    sheet = app.styleSheet()
    _set_style_sheet(app, "")
    try:
        yield
    finally:
        _set_style_sheet(app, sheet)


def _set_style_sheet(app: QApplication, sheet: str) -> None:
    """Set the style sheet and restore the fonts: Qt resets each widget to the font of its first show."""
    fonts = [(shown_widget, shown_widget.font()) for shown_widget in app.allWidgets()]
    app.setStyleSheet(sheet)
    for widget, font in fonts:
        if widget.font() != font:
            widget.setFont(font)


def _font(entry: TypeRole, scale: float) -> QFont:
    font = QFont(tokens().family[entry.family])
    font.setPixelSize(max(8, round(entry.size * scale)))
    font.setWeight(QFont.Weight(entry.weight))
    font.setLetterSpacing(QFont.SpacingType.PercentageSpacing, 100 + entry.tracking)
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    if entry.family == "mono":
        font.setFeature(QFont.Tag("calt"), 0)  # no ligatures: show what a model wrote letter by letter
    elif entry.tabular:
        font.setFeature(QFont.Tag("tnum"), 1)
    return font
