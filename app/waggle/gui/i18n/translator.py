"""The language of the window: one catalog of words for each, and how messages and numbers are written in it.

Words of the window are looked up by their English. A message from below the window is looked up by its id, and gets its values,
which are written as the language writes them. Names and texts of people are values, so they stay as they are.
"""

import re
from collections.abc import Callable, Mapping
from typing import Literal, get_args
from xml.etree import ElementTree

import msgspec
from PySide6.QtCore import QLibraryInfo, QLocale, Qt, QTranslator
from PySide6.QtGui import QGuiApplication

from waggle.core import paths
from waggle.core.message import Figure, Message, Value, filled

Catalog = Mapping[str, tuple[str, ...]]  # by English: the translation, or the forms of a plural
Language = Literal[
    "en", "de", "pl", "pseudo", "mirrored"
]  # the last two find words that do not fit and sides that are not mirrored
NAMES: dict[str, str] = {"en": "English", "de": "Deutsch", "pl": "Polski"}  # each in its own language
MINUS = "\u2212"
THIN = "\u202f"  # narrow no-break space: cannot be mistaken for a decimal sign
ACCENTS = str.maketrans("aeiouyncAEIOUNC", "áéíóúýñçÁÉÍÓÚÑÇ")
FROM_RIGHT = "\u200f"  # right-to-left mark: what follows is laid out from the right, as in Arabic and Hebrew
PLACE = re.compile(r"%\d|%n")


def one_or_many(amount: int) -> int:
    """The forms of a plural in Germanic languages."""
    return int(amount != 1)


def one_few_or_many(amount: int) -> int:
    """The forms of a plural in Polish: for 1, for numbers that end in 2 to 4 (but not 12 to 14), and for all others."""
    if amount == 1:
        return 0
    return 1 if amount % 10 in (2, 3, 4) and amount % 100 not in (12, 13, 14) else 2


class NumberFormat(msgspec.Struct, frozen=True, kw_only=True):
    """How a language writes numbers: separator of thousands, decimal sign, sign after a day of the month, percent sign.

    `form` chooses one of the forms of a plural for an amount, as Qt Linguist lists them.
    """

    thousands: str = ","
    point: str = "."
    ordinal: str = ""
    percent: str = "%"
    form: Callable[[int], int] = one_or_many


NUMBER_FORMATS: dict[Language, NumberFormat] = {
    "de": NumberFormat(thousands=THIN, point=",", ordinal=".", percent=f"{THIN}%"),
    "pl": NumberFormat(thousands=THIN, point=",", percent=f"{THIN}%", form=one_few_or_many),
}


class ActiveLanguage:
    """The language in use, one for the application."""

    def __init__(self) -> None:
        self.language: Language = "en"
        self.catalog: Catalog = {}
        self.manner = NumberFormat()
        self.qt = QTranslator()


_active = ActiveLanguage()


def language_of_setting(name: str) -> Language:
    """The language of a setting: "system" is the first of the person's menu languages that Waggle has, else English.

    Not the locale's name: on Windows that is the format of numbers, whatever the language of the menus.
    """
    names = [tag.partition("-")[0] for tag in QLocale.system().uiLanguages()] if name == "system" else [name]
    return next((language for candidate in names for language in get_args(Language) if language == candidate), "en")


def use(language: Language) -> None:
    """Switch to a language; widgets on screen have to be built again."""
    _active.language = language
    _active.catalog = read(language)
    _active.manner = NUMBER_FORMATS.get(language, NumberFormat())
    app = QGuiApplication.instance()
    assert isinstance(app, QGuiApplication)
    app.setLayoutDirection(Qt.LayoutDirection.RightToLeft if language == "mirrored" else Qt.LayoutDirection.LeftToRight)
    app.removeTranslator(_active.qt)
    if _active.qt.load(f"qtbase_{language}", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)):
        app.installTranslator(_active.qt)  # for Qt's own dialogs


def current_language() -> Language:
    return _active.language


def is_right_to_left() -> bool:
    """Whether the layout runs from right to left."""
    return QGuiApplication.layoutDirection() == Qt.LayoutDirection.RightToLeft


def number_format() -> NumberFormat:
    return _active.manner


def read(language: Language) -> Catalog:
    """The catalog of a language; empty for English and the two test languages."""
    path = paths.resources() / "language" / f"{language}.ts"
    if not path.exists():
        return {}
    catalog = {}
    for message in ElementTree.parse(path).getroot().iter("message"):  # our own file, no stranger's
        forms = [form.text or "" for form in message.iter("numerusform")] or [message.findtext("translation", "")]
        if all(forms):
            catalog[message.findtext("source", "")] = tuple(forms)
    return catalog


def translate(words: str) -> str:
    """Translate words of the window, or a message; unchanged if the catalog lacks them."""
    if not isinstance(words, Message):
        return _in_language(words)
    template = _in_language(words.id) if words.amount is None else _form_for(words.amount, words.singular, words.id)
    return filled(template, [_value_text(value) for value in words.values], figure_text(words.amount or 0, 0))


def translate_counted(amount: int, singular: str, many: str) -> str:
    """The words for an amount of something, with the amount in place of %n."""
    return _form_for(amount, singular, many).replace("%n", figure_text(amount, 0))


def _form_for(amount: int, singular: str, many: str) -> str:
    forms = _active.catalog.get(many)
    if forms is None:
        return _in_language(singular if amount == 1 and singular else many)
    return forms[min(_active.manner.form(amount), len(forms) - 1)]


def figure_text(number: float, digits: int) -> str:
    """1248.5 to one digit: "1,248.5", or "1 248,5" in German."""
    manner = _active.manner
    return f"{number:,.{digits}f}".translate({ord(","): manner.thousands, ord("."): manner.point, ord("-"): MINUS})


def _value_text(value: Value) -> str:
    if isinstance(value, Message):
        return translate(value)
    return figure_text(value.number, value.digits) if isinstance(value, Figure) else str(value)


def _in_language(english: str) -> str:
    if _active.language == "pseudo":
        return pseudo(english)
    if _active.language == "mirrored":
        return f"{FROM_RIGHT}{english}" if english.strip() else english
    return _active.catalog.get(english, (english,))[-1]


def pseudo(words: str) -> str:
    """Accented and a third longer: anything else on screen was never passed to a translator."""
    places = PLACE.findall(words)
    accented = [piece.translate(ACCENTS) for piece in PLACE.split(words)]
    filled_in = "".join(piece + place for piece, place in zip(accented, [*places, ""], strict=True))
    return filled_in + "~" * (len(words) // 3) if words.strip() else words
