"""Argument types for numbers within bounds, with an error message for numbers outside."""

import argparse
import math
from collections.abc import Callable


def whole(least: int) -> Callable[[str], int]:
    """A parser of whole numbers, `least` or greater."""

    def read(word: str) -> int:
        try:
            if (number := int(word)) >= least:
                return number
        except ValueError:
            pass
        raise argparse.ArgumentTypeError(f"{word} is not a whole number of at least {least}")

    return read


def real(least: float, most: float = math.inf) -> Callable[[str], float]:
    """A parser of finite numbers from `least` to `most`."""

    def read(word: str) -> float:
        try:
            if least <= (number := float(word)) <= most and math.isfinite(number):
                return number
        except ValueError:
            pass
        within = f"of at least {least:g}" if math.isinf(most) else f"from {least:g} to {most:g}"
        raise argparse.ArgumentTypeError(f"{word} is not a number {within}")

    return read
