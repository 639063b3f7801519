"""Texts that are nearly a key: altered ones that are wrong, equivalent ones that are right, and constants that may win anyway."""

import itertools
import random
import re
import string
from collections.abc import Iterator, Sequence

CONSTANTS = (
    *("0", "1", "2", "3", "4", "5", "10", "-1", "0.0", "1.0", "1/2", "0 1 2 3 4 5 6 7 8 9"),
    *("Yes", "No", "yes", "no", "Yes No", "True", "False", "None", "A", "B", "P", "I do not know", "impossible", "infeasible"),
    *("[]", "[[]]", "{}", "()", "-", ".", ",", "00:00", "0 days"),
)
COMMON_KEYS = 8  # of these, each is tried as a constant
PAIRED_KEYS = 3  # of these, each two are tried side by side: some scorers look for the key anywhere in a text
ELEMENT = re.compile(r"[^\s,;|\[\](){}\"']+")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
LETTERS = re.compile(r"[^\W\d_]")
BESIDE = "words"  # the first word of alterations that put something beside the key


def constants(keys_by_frequency: Sequence[str]) -> list[str]:
    """Answers to try on every question: typical constants, the commonest keys, and pairs of them."""
    pairs = [
        separator.join((first, second))
        for first in keys_by_frequency[:PAIRED_KEYS]
        for second in keys_by_frequency[:PAIRED_KEYS]
        for separator in (" ", " or ")
        if first != second
    ]
    return list(dict.fromkeys((*keys_by_frequency[:COMMON_KEYS], *CONSTANTS, *pairs)))


def altered(question: str, key: str, other: str, chance: random.Random) -> Iterator[tuple[str, str]]:
    """(the kind of the alteration, a text that differs from the key in it); `other` is the key of another question."""
    yield from _changed_characters(key, chance)
    yield from _changed_elements(key, chance)
    yield "words before", f"The answer is {key}"
    yield "words after", f"{key} is the answer"
    yield "words on lines around", f"Let me think.\n{key}\nThis is right."
    if other != key:
        yield "another key", other
        yield "words: both keys", f"{key} or {other}"
        yield "words: both keys, the other first", f"{other} {key}"
    if numbers := [number for number in NUMBER.findall(question) if number != key]:
        yield "a number of the question", chance.choice(numbers)


def _changed_characters(key: str, chance: random.Random) -> Iterator[tuple[str, str]]:
    digits = [place for place, letter in enumerate(key) if letter in string.digits]
    letters = [match.start() for match in LETTERS.finditer(key)]
    if digits:
        yield "a digit changed", _with_other_letter(key, chance.choice(digits), string.digits, chance)
        yield "the last digit changed", _with_other_letter(key, digits[-1], string.digits, chance)
        yield "a digit added in front", f"{key[: digits[0]]}{chance.choice('123456789')}{key[digits[0] :]}"
        yield "a digit added behind", f"{key[: digits[-1] + 1]}{chance.choice('123456789')}{key[digits[-1] + 1 :]}"
    if letters:
        place = chance.choice(letters)
        alphabet = string.ascii_uppercase if key[place].isupper() else string.ascii_lowercase
        yield "a letter changed", _with_other_letter(key, place, alphabet, chance)
    if NUMBER.fullmatch(key) and float(key):
        yield "the sign changed", key[1:] if key.startswith("-") else f"-{key}"


def _with_other_letter(key: str, place: int, alphabet: str, chance: random.Random) -> str:
    letter = chance.choice([letter for letter in alphabet if letter != key[place]])
    return f"{key[:place]}{letter}{key[place + 1 :]}"


def _changed_elements(key: str, chance: random.Random) -> Iterator[tuple[str, str]]:
    elements = list(ELEMENT.finditer(key))
    if len(elements) < 2:
        return
    pairs = [pair for pair in itertools.pairwise(elements) if pair[0].group() != pair[1].group()]
    if pairs:
        first, second = chance.choice(pairs)
        between = key[first.end() : second.start()]
        yield "two elements swapped", f"{key[: first.start()]}{second.group()}{between}{first.group()}{key[second.end() :]}"
    last = elements[-1]
    yield "the last element dropped", key[: elements[-2].end()] + key[last.end() :]
    yield "the last element repeated", key[: last.end()] + key[elements[-2].end() : last.end()] + key[last.end() :]


def equivalent(key: str) -> Iterator[tuple[str, str]]:
    """(the kind of the form, a text that a person would call the same answer)."""
    forms = {
        "white space around": f"  {key}\n",
        "white space doubled": key.replace(" ", "  "),
        "no white space": "".join(key.split()) if re.search(r"[,×/]\s|\s[×/]", key) else key,
        "other case": key.swapcase(),
        "a period behind": f"{key}.",
        "a trailing zero": _with_trailing_zero(key),
        "a plus in front": f"+{key}" if NUMBER.fullmatch(key) and not key.startswith("-") else key,
    }
    yield from ((kind, form) for kind, form in forms.items() if form != key)


def _with_trailing_zero(key: str) -> str:
    if not NUMBER.fullmatch(key):
        return key
    return f"{key}0" if "." in key else f"{key}.0"
