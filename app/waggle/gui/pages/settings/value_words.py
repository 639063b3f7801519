"""A value of a setting in words, as its control shows it."""

from PySide6.QtCore import QLocale

from waggle.core.settings import Settings, Value, value_of
from waggle.gui.i18n import translator
from waggle.gui.i18n.formatting import tr
from waggle.gui.pages.settings.rows import Options, Setting, TextLine, Toggle, WeekHours
from waggle.gui.widgets.controls.inputs import Range, number_text


def value_words(row: Setting, value: Value) -> str:
    """What this value means, such as "On", "85 °C" or "No limit"."""
    match row.kind:
        case Toggle():
            return tr("On") if value else tr("Off")
        case Options(options):
            words = next((tr(words) for each, words in options if each == value), str(value))
            return words.replace("%", translator.number_format().percent)
        case Range() as kind:
            return _number_words(kind, value)
        case TextLine():
            items = value if isinstance(value, tuple) else (str(value),)
            return ", ".join(item for item in items if item) or tr("Empty")
        case WeekHours():
            return tr("All hours") if not value else tr("Chosen hours")


def _number_words(kind: Range, value: Value) -> str:
    assert isinstance(value, int | float)
    if value == 0 and kind.zero:
        return tr(kind.zero)
    number = number_text(QLocale(translator.current_language()), float(value))
    return number + (translator.number_format().percent if kind.unit == "%" else f" {kind.unit}" if kind.unit else "")


def default_words(row: Setting) -> str:
    return value_words(row, value_of(Settings(), row.key))
