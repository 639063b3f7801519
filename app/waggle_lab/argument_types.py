"""Numbers that the laboratory's options take, within their bounds: others are refused in words before anything is done."""

import argparse
import math
from collections.abc import Callable


def whole(least: int) -> Callable[[str], int]:
    """A whole number from `least` on."""

    def read(word: str) -> int:
        try:
            if (number := int(word)) >= least:
                return number
        except ValueError:
            pass
        raise argparse.ArgumentTypeError(f"{word} is not a whole number from {least} on")

    return read


def real(least: float, most: float = math.inf) -> Callable[[str], float]:
    """A number from `least` to `most`, never without end."""

    def read(word: str) -> float:
        try:
            if least <= (number := float(word)) <= most and math.isfinite(number):
                return number
        except ValueError:
            pass
        within = f"from {least:g} on" if math.isinf(most) else f"from {least:g} to {most:g}"
        raise argparse.ArgumentTypeError(f"{word} is not a number {within}")

    return read
