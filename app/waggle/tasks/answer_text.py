"""How an answer is read, a person's and a model's alike: as words, a number, items or JSON.

All functions take any text, never raise anything but what they say, and take time in proportion to the text.
"""

import decimal
import json
import re
import unicodedata
from decimal import Decimal
from typing import Any

from waggle.core.message import Message

LONGEST_NUMBER = 64  # characters
LARGEST_EXPONENT = 400  # of ten, beyond every float
LONGEST_NORMALISED = 4000  # characters, four times those of the longest true answer: NFKC makes up to 18 of one
MOST_MARKS = 30  # combining marks in a row (UAX 15, stream-safe text): Python sorts a longer row in quadratic time
DECIMALS = decimal.Context(prec=LONGEST_NUMBER + 2 * LARGEST_EXPONENT, traps=[])  # exact for every number that is read
NUMBER = re.compile(
    r"(?P<digits>[1-9][0-9]{0,2}(?:[, '_][0-9]{3})+|[0-9]+)?(?P<fraction>\.[0-9]*)?(?:e(?P<exponent>[+-]?[0-9]{1,4}))?"
)
CURRENCIES = frozenset("$€£¥₹₩₽₺₫₴₦฿₿¢")
RAISED = frozenset("⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉")  # NFKC would read 10² as 102
RAISED_DIGIT = re.compile(f"([{''.join(sorted(RAISED))}])")
MINUS_SIGNS = str.maketrans("\u2212\u2012\u2013", "---")  # NFKC leaves them
OPENING, CLOSING = "[({", "])}"


def words(text: str) -> str:
    """The text in NFKC without regard to case, with single spaces, and without a period at its end."""
    return " ".join(_compatible(_compatible(text).casefold()).split()).removesuffix(".").rstrip()


def _compatible(text: str) -> str:
    """Unicode NFKC, but raised digits stay raised. Stays as it is: a text that no true answer can be, or with too many combining
    marks in a row."""
    if text.isascii() or len(text) > LONGEST_NORMALISED or not _is_stream_safe(text):
        return text
    return "".join(part if part in RAISED else unicodedata.normalize("NFKC", part) for part in RAISED_DIGIT.split(text))


def composed(text: str) -> str:
    """Unicode NFC; a text with too many combining marks in a row stays as it is."""
    return text if text.isascii() or not _is_stream_safe(text) else unicodedata.normalize("NFC", text)


def _is_stream_safe(text: str) -> bool:
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks > MOST_MARKS:
            return False
    return True


def number(text: str) -> Decimal | None:
    """The number that a text is; None if it is none, or too long or too large.

    Read over: white space, an equals sign before it, a sign of currency before or after it, a percent sign after it (50% is
    50), separators of thousands (1,234,567 or 1 234 567), and a period at the end.
    """
    text = text.strip()
    if len(text) > LONGEST_NUMBER or not RAISED.isdisjoint(text):
        return None
    text = words(text).translate(MINUS_SIGNS).removeprefix("=").strip()
    sign, text = _without_sign(text)
    text = _without_currency(text).removesuffix("%").strip()
    if not sign:
        sign, text = _without_sign(text)  # $-5
    match = NUMBER.fullmatch(text)
    if match is None or not (match["digits"] or (match["fraction"] or "").strip(".")):
        return None
    if abs(int(match["exponent"] or 0)) > LARGEST_EXPONENT:
        return None
    digits = "".join(digit for digit in match["digits"] or "0" if digit in "0123456789")
    return DECIMALS.create_decimal(f"{sign}{digits}{match['fraction'] or ''}e{match['exponent'] or 0}")


def _without_sign(text: str) -> tuple[str, str]:
    return (text[0], text[1:].strip()) if text[:1] in ("+", "-") else ("", text)


def _without_currency(text: str) -> str:
    if text[:1] in CURRENCIES:
        return text[1:].strip()
    return text[:-1].strip() if text[-1:] in CURRENCIES else text


class Digits(str):
    """A number in JSON as it is written: turning it into a number may take long or overflow."""


def json_value(text: str) -> Any:
    """What a text is in JSON, with numbers as `Digits`. Raises ValueError, also for a name twice in an object."""
    try:
        return json.loads(text, parse_int=Digits, parse_float=Digits, parse_constant=_refuse_constant, object_pairs_hook=_object)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _refuse_constant(name: str) -> None:
    raise ValueError(Message("%1 is no number", name))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("it has a name twice")
    return fields


def scalar(value: Any) -> str | None:
    """A JSON value as a text; None for null, a list or an object."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else None


def comparable(text: str) -> str:
    """What is compared of a short text: its number in one form, or its words.

    A text instead of a Decimal, because anybody can write many different numbers with equal hashes.
    """
    value = number(text)
    return words(text) if value is None else str(DECIMALS.normalize(DECIMALS.add(value, 0)))  # the sum: -0 is 0


def items(text: str) -> list[str]:
    """The items of a list, which is one in JSON, or separated by semicolons, lines or commas, with or without brackets."""
    text = text.strip()
    if text[:1] == "[":
        try:
            values = json_value(text)
        except ValueError:
            values = None
        if isinstance(values, list) and all(scalar(value) is not None for value in values):
            return [item for value in values if (item := str(scalar(value)).strip())]
    if text[:1] and text[:1] in OPENING and text[-1:] == CLOSING[OPENING.index(text[:1])]:
        text = text[1:-1]
    separator = next((separator for separator in ";\n" if separator in text), ",")
    return [item for part in text.split(separator) if (item := part.strip().strip("\"'").strip())]
