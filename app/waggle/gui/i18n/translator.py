"""The language of the window: one message catalog for each, and how a sentence of the engine is found in it.

Words of the window itself are looked up whole. Sentences from below the window (the engine, the status, a verdict on a peer)
come in English with numbers and names in them: they are matched against patterns such as "Paused until %1.", sentence by
sentence. The value of a placeholder is not translated, because swarms and programs have names and models answer anything; only
in the patterns of _TRANSLATED_VALUES it is translated, too.
"""

import functools
import re
from collections.abc import Mapping
from typing import Literal, get_args

import msgspec
from PySide6.QtCore import QLibraryInfo, QLocale, Qt, QTranslator
from PySide6.QtGui import QGuiApplication

from waggle.core import paths

Language = Literal["en", "de", "pseudo", "mirrored"]  # the last two find words that do not fit and sides that are not mirrored
NAMES: dict[str, str] = {"en": "English", "de": "Deutsch"}  # each in its own language
THIN = "\u202f"  # narrow no-break space: cannot be mistaken for a decimal sign
ACCENTS = str.maketrans("aeiouyncAEIOUNC", "áéíóúýñçÁÉÍÓÚÑÇ")
FROM_RIGHT = "\u200f"  # right-to-left mark: what follows is laid out from the right, as in Arabic and Hebrew
PLACEHOLDER = re.compile(r"%\d|%n")
SENTENCE = re.compile(r"(?<=\.)\s+")
MEASURED = re.compile(r" (GB|MB|kWh|Sekunden)\b")  # elsewhere "1.2" may be a version number
DECIMAL = re.compile(r"\d+\.\d+")
THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
LONGEST = 500  # characters of a sentence to match: it may quote strangers, and matching time grows polynomially
ANSWERED = "wrong: %1"  # followed by the answer of a model, which may look like any sentence
MOST_PARTS = 3  # of one sentence: a name in it may contain full stops
MOST_SENTENCES = 100  # of one text: the rest is not translated
_TRANSLATED_VALUES = frozenset({
    "%1, line %2: %3.", "%1, also in its smallest parts.", "%1, and falling", "%1, and rising", "%1, steady",
    "A saved state could not be read: %1",
    "%1 names %2, which it may not: %3.", "its questions cannot be made where answers are judged (%1)",
    "Busy: %1, %2.", "Calm: %1, hardly anything new arrives.", "Downloading the model: %1 of %2 MB, %3.",
    "It broke a rule (%1): it is asked again in %2.", "It is asked like any stranger: %1 so far, %2.",
    "It is asked like any stranger: most of its groups that were tried here taught nothing, %1.",
    "Trusted: %1, %2.", "Lively: %1, %2.", "Nothing was lost; %1.", "Paused until %1.",
    "Quiet: %1, %2.", "This computer's clock is %1 fast.", "This computer's clock is %1 slow.",
    "%1 online.", "Your model is %1, on this computer only.", "Your model is %1, with %2.",
    "Your rules wait until %1.",
})  # fmt: skip


class MessageCatalog(msgspec.Struct, frozen=True, kw_only=True):
    """English to the language: `words` of the window, and `sentences`, patterns of what comes from below it."""

    words: Mapping[str, str] = {}
    sentences: Mapping[str, str] = msgspec.field(default_factory=dict, name="told")


class NumberFormat(msgspec.Struct, frozen=True, kw_only=True):
    """How a language writes numbers: separator of thousands, decimal sign, sign after a day of the month, percent sign."""

    thousands: str = ","
    point: str = "."
    ordinal: str = ""
    percent: str = "%"


NUMBER_FORMATS: dict[Language, NumberFormat] = {"de": NumberFormat(thousands=THIN, point=",", ordinal=".", percent=f"{THIN}%")}


class ActiveLanguage:
    """The language in use, one for the application."""

    def __init__(self) -> None:
        self.language: Language = "en"
        self.book = MessageCatalog()
        self.manner = NumberFormat()
        self.patterns: tuple[tuple[re.Pattern[str], str, bool], ...] = ()  # pattern, translation, whether values are translated
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
    _active.book = read(language)
    _active.manner = NUMBER_FORMATS.get(language, NumberFormat())
    longest_first = sorted(_active.book.sentences.items(), key=lambda entry: -len(PLACEHOLDER.sub("", entry[0])))
    _active.patterns = tuple((_pattern(english), words, english in _TRANSLATED_VALUES) for english, words in longest_first)
    translate_sentence.cache_clear()
    _translate_match.cache_clear()
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


def read(language: Language) -> MessageCatalog:
    """The catalog of a language; empty for English and the two test languages."""
    path = paths.resources() / "language" / f"{language}.json"
    return msgspec.json.decode(path.read_bytes(), type=MessageCatalog) if path.exists() else MessageCatalog()


def translate(words: str) -> str:
    """Translate words of the window; unchanged if the catalog lacks them."""
    if _active.language == "pseudo":
        return pseudo(words)
    if _active.language == "mirrored":
        return f"{FROM_RIGHT}{words}" if words.strip() else words
    return _active.book.words.get(words, words)


@functools.lru_cache(maxsize=4096)
def translate_sentence(words: str) -> str:
    """Translate text from below the window, whole or else sentence by sentence; unchanged where no pattern matches."""
    if _active.language in ("pseudo", "mirrored") or not words:
        return translate(words)
    book = _active.book.sentences
    if words in book:
        return book[words]
    if words.startswith(before := ANSWERED.removesuffix("%1")):
        return book.get(ANSWERED, ANSWERED).replace("%1", words.removeprefix(before))
    parts, translated_parts, place = SENTENCE.split(words, MOST_SENTENCES), list[str](), 0
    while place < len(parts):
        length, sentence = _translate_first_sentence(parts[place : place + MOST_PARTS])
        translated_parts.append(sentence)
        place += length
    return " ".join(translated_parts)


def _translate_first_sentence(parts: list[str]) -> tuple[int, str]:
    """How many of these parts the first sentence spans, and its translation."""
    for length in range(1, len(parts) + 1):
        if (sentence := _translate_match(" ".join(parts[:length]))) is not None:
            return length, sentence
    return 1, parts[0]


@functools.lru_cache(maxsize=4096)
def _translate_match(words: str) -> str | None:
    for book in (_active.book.sentences, _active.book.words):
        if words in book:
            return book[words]
    for pattern, answer, ours in _active.patterns if len(words) <= LONGEST else ():
        if match := pattern.fullmatch(words):
            measured = MEASURED.search(answer) is not None
            return _fill_placeholders(answer, [_translate_value(value, measured=measured, ours=ours) for value in match.groups()])
    return None


def _fill_placeholders(answer: str, values: list[str]) -> str:
    """Fill all placeholders in one pass: a name may contain "%1"."""
    places = {f"%{number}": value for number, value in enumerate(values, 1)}
    return PLACEHOLDER.sub(lambda place: places.get(place[0], place[0]), answer)


def _translate_value(value: str, *, measured: bool, ours: bool) -> str:
    """The value of a placeholder: numbers in the format of the language, `ours` translated, anything else unchanged."""
    if THOUSANDS.fullmatch(value):
        return value.replace(",", _active.manner.thousands)
    if measured and DECIMAL.fullmatch(value):
        return value.replace(".", _active.manner.point)
    return translate_sentence(value) if ours else value


@functools.cache
def _pattern(english: str) -> re.Pattern[str]:
    pieces = (re.escape(piece) for piece in PLACEHOLDER.split(english))
    return re.compile("(.+?)".join(pieces), re.DOTALL)


def pseudo(words: str) -> str:
    """Accented and a third longer: anything else on screen was never passed to a translator."""
    places = PLACEHOLDER.findall(words)
    accented = [piece.translate(ACCENTS) for piece in PLACEHOLDER.split(words)]
    filled = "".join(piece + place for piece, place in zip(accented, [*places, ""], strict=True))
    return filled + "~" * (len(words) // 3) if words.strip() else words
