"""Oracles for the datasets of topic arithmetic whose questions hold an expression."""

import re
from collections.abc import Callable
from fractions import Fraction

from waggle_lab.truth.expressions import number, rounded, value_of
from waggle_lab.truth.interface import Oracle
from waggle_lab.truth.question_text import read

BASIC = re.compile(r"Calculate ([-+*/() \d]+)\.")
CHAIN = re.compile(r"State the final answer to the following arithmetic problem: ([-+. \d]+) =")
PRODUCT = re.compile(r"Solve the following multiplication: ([-* \d]+)\. Give only the result as your final answer\.")
DECIMAL = re.compile(
    r"Please solve this problem to a maximum of (\d+) significant digits, rounding up from the half\. "
    r"Only reply with the final value\.\n([-+*/().\d]+) = \?"
)
POWER = re.compile(
    r"Your task is to compute an exponentiation of a number\.\n\n"
    r"Compute (-?)(\d+\.\d+)\^(-?\d+)\. Return your final answer correct to 3 significant figures\.\n"
    r"Provide your answer in scientific notation using 'e' notation \(e\.g\., 1\.23e\+4\)\.\n?"
)
POWER_DIGITS = 3


def _expression_oracle(pattern: re.Pattern[str]) -> Oracle:
    """An oracle for questions whose first group is an expression and whose answer is its exact value."""

    def oracle(question: str, key: str) -> bool:
        expression = read(pattern, question)[1]
        return _is_value(key, lambda: value_of(expression))

    return oracle


def _is_value(key: str, compute: Callable[[], Fraction]) -> bool:
    """Whether a key is this value. What divides by zero has no true answer."""
    try:
        return number(key) == compute()
    except ZeroDivisionError:
        return False


def decimal_arithmetic(question: str, key: str) -> bool:
    """Each value is exact, and only the result is rounded, half up."""
    match = read(DECIMAL, question)
    return _is_value(key, lambda: rounded(value_of(match[2]), int(match[1])))


def power_function(question: str, key: str) -> bool:
    """By convention a power binds more strongly than a sign: -2^2 is -4. Both sides are compared to three digits."""
    match, value = read(POWER, question), number(key)
    if value is None:
        return False
    truth = Fraction(match[2]) ** int(match[3]) * (-1 if match[1] else 1)
    return rounded(value, POWER_DIGITS) == rounded(truth, POWER_DIGITS)


ORACLES: dict[str, Oracle] = {
    "basic_arithmetic": _expression_oracle(BASIC),
    "chain_sum": _expression_oracle(CHAIN),
    "decimal_arithmetic": decimal_arithmetic,
    "decimal_chain_sum": _expression_oracle(CHAIN),
    "power_function": power_function,
    "products": _expression_oracle(PRODUCT),
}
