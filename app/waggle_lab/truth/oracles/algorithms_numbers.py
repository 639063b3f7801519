"""Oracles of algorithms on numbers: bases, primes, sums in letters and filters."""

import re
from collections import Counter
from decimal import Decimal

from waggle_lab.truth.expressions import is_prime
from waggle_lab.truth.interface import Oracle, UnreadableQuestion
from waggle_lab.truth.question_text import Wording

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
NAMED_BASES = {"binary": 2, "hexadecimal": 16}
BASE = r"binary|hexadecimal|base-\d+"

CONVERSION = Wording(
    """Your task is to convert a number between two different bases.

If the target base is > 10, use lowercase letters a-z for digits above 9.

Now, convert the «source» number «number» to «target»
""",
    source=BASE,
    number="[0-9a-z]+",
    target=BASE,
)
PRIMES = Wording("Count how many prime numbers there are between «low» and «high» (inclusive) ?", low=r"\d+", high=r"\d+")
CRYPTARITHM = Wording(
    """Solve this cryptarithm:

«addends»
-«dashes»
«total»

Each letter stands for a unique digit (0-9). No leading letter can be zero.
Provide a comma separated mapping from letters to digits that satisfies the equation in your final answer. \
Output format: "A=1,B=2,C=3" (without quotes)
""",
    addends=r"(?: *[A-Z]+\n)+\+ *[A-Z]+",
    dashes="-+",
    total=" *[A-Z]+",
)
FILTER = Wording(
    "«verb» all numbers «side» than «bound» in this list: [«numbers»]\nReturn the new list in the same format.",
    verb="Keep|Remove",
    side="larger|smaller",
    bound=r"-?\d+(?:\.\d+)?",
    numbers=r"'-?\d+(?:\.\d+)?'(?:, '-?\d+(?:\.\d+)?')*",
)


def _base(name: str) -> int:
    return NAMED_BASES.get(name) or int(name.removeprefix("base-"))


def base_conversion(question: str, key: str) -> bool:
    """Whether both numerals stand for the same integer and the key has no leading zero."""
    parts = CONVERSION.read(question)
    bases = _base(parts["source"]), _base(parts["target"])
    if not all(2 <= base <= len(DIGITS) for base in bases):
        raise UnreadableQuestion(question[-80:])
    try:
        value = int(parts["number"], bases[0])
        return re.fullmatch("0|[1-9a-z][0-9a-z]*", key) is not None and int(key, bases[1]) == value
    except ValueError:  # a digit that its base lacks
        return False


def count_primes(question: str, key: str) -> bool:
    """Whether the key is the count of primes by trial division."""
    parts = PRIMES.read(question)
    return key == str(sum(map(is_prime, range(int(parts["low"]), int(parts["high"]) + 1))))


def cryptarithm(question: str, key: str) -> bool:
    """Whether the key's digits are distinct, no word has a leading zero and the sum is right. Others may solve it as well."""
    parts = CRYPTARITHM.read(question)
    addends, total = re.findall("[A-Z]+", parts["addends"]), parts["total"].strip()
    if not re.fullmatch(r"[A-Z]=\d(,[A-Z]=\d)*", key):
        return False
    pairs = [pair.split("=") for pair in key.split(",")]
    digits = dict(pairs)
    letters = set("".join(addends) + total)
    if set(digits) != letters or len(pairs) != len(letters) or len(set(digits.values())) != len(letters):
        return False
    weights: Counter[str] = Counter()  # of each letter in the equation: the sum of its powers of ten
    for word, sign in [*((addend, 1) for addend in addends), (total, -1)]:
        for power, letter in enumerate(reversed(word)):
            weights[letter] += sign * 10**power
    balance = sum(weight * int(digits[letter]) for letter, weight in weights.items())
    return balance == 0 and all(digits[word[0]] != "0" for word in [*addends, total])


def number_filtering(question: str, key: str) -> bool:
    """Whether the key lists the numerals that remain, each as the question writes it."""
    parts = FILTER.read(question)
    bound, numerals = Decimal(parts["bound"]), re.findall(r"[-.\d]+", parts["numbers"])
    larger, keep = parts["side"] == "larger", parts["verb"] == "Keep"
    chosen = [text for text in numerals if (Decimal(text) > bound if larger else Decimal(text) < bound) == keep]
    return key == "[" + ", ".join(f"'{text}'" for text in chosen) + "]"


ORACLES: dict[str, Oracle] = {
    "base_conversion": base_conversion,
    "count_primes": count_primes,
    "cryptarithm": cryptarithm,
    "number_filtering": number_filtering,
}
