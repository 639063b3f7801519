"""Exact values of the arithmetic expressions in questions, and of the numbers in keys."""

import functools
import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

from waggle_lab.truth.interface import UnreadableQuestion

TOKEN = re.compile(r"\s*(\d+(?:\.\d+)?|[-+*/()])")
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
GUARD_DIGITS = 80  # of a quotient before it is rounded to the digits that a question asks for


def value_of(expression: str) -> Fraction:
    """The value of an expression with + - * / and brackets, by the usual order of operations; a sign may precede any operand.

    Raises UnreadableQuestion for anything else, and ZeroDivisionError.
    """
    tokens, place = [], 0
    while place < len(expression.rstrip()):
        match = TOKEN.match(expression, place)
        if match is None:
            raise UnreadableQuestion(f"no arithmetic: {expression[place:][:40]!r}")
        tokens.append(match[1])
        place = match.end()
    value, rest = _sum(tokens)
    if rest:
        raise UnreadableQuestion(f"more behind the expression: {' '.join(rest)[:40]}")
    return value


def _sum(tokens: list[str]) -> tuple[Fraction, list[str]]:
    value, tokens = _product(tokens)
    while tokens and tokens[0] in "+-":
        sign = tokens[0]
        operand, tokens = _product(tokens[1:])
        value = value + operand if sign == "+" else value - operand
    return value, tokens


def _product(tokens: list[str]) -> tuple[Fraction, list[str]]:
    value, tokens = _operand(tokens)
    while tokens and tokens[0] in "*/":
        sign = tokens[0]
        operand, tokens = _operand(tokens[1:])
        value = value * operand if sign == "*" else value / operand
    return value, tokens


def _operand(tokens: list[str]) -> tuple[Fraction, list[str]]:
    match tokens:
        case ["-", *rest]:
            value, rest = _operand(rest)
            return -value, rest
        case ["(", *rest]:
            value, rest = _sum(rest)
            if rest[:1] == [")"]:
                return value, rest[1:]
        case [number, *rest] if number[0].isdigit():
            return Fraction(number), rest
    raise UnreadableQuestion(f"no operand: {' '.join(tokens)[:40]}")


def number(text: str) -> Fraction | None:
    """The value of a plain number, also in scientific notation; None for anything else."""
    return Fraction(text) if NUMBER.fullmatch(text) else None


def rounded(value: Fraction, digits: int) -> Fraction:
    """A value rounded half up to this many significant digits."""
    quotient = Context(prec=GUARD_DIGITS).divide(Decimal(value.numerator), Decimal(value.denominator))
    return Fraction(Context(prec=digits, rounding=ROUND_HALF_UP).plus(quotient))


@functools.cache
def is_prime(number: int) -> bool:
    """By trial division."""
    return number > 1 and all(number % divisor for divisor in range(2, math.isqrt(number) + 1))
