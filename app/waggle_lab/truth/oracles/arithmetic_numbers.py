"""Oracles for the datasets of topic arithmetic that ask about given numbers: their divisors, digits, sizes and odds."""

import itertools
import math
import re
from fractions import Fraction

from waggle_lab.truth.expressions import is_prime
from waggle_lab.truth.interface import Oracle, UnreadableQuestion
from waggle_lab.truth.question_text import read

BITS = re.compile(r"How many 1 bits are there in the binary representation of the number (\d+)\?")
DIVISOR = re.compile(
    r"Find the Greatest Common Divisor \(GCD\) of these numbers: ([\d, ]+)\. Give only the GCD as your final answer\."
)
MULTIPLE = re.compile(r"Find the Least Common Multiple \(LCM\) of these numbers: ([\d, ]+)")
FACTORS = re.compile(
    r"Find the prime factorization of (\d+)\. Write the factors separated by × \(Example: for 12 the answer would be: 2 × 2 × 3\)"
)
SIMPLIFY = re.compile(
    r"Simplify the fraction (\S+) to its lowest terms\. Give only the simplified fraction as your final answer\."
)
PLAIN = r"(\d+)/(\d+)"
FRACTION_STYLES = (PLAIN, rf"\${PLAIN}\$", r"\$\\frac\{(\d+)\}\{(\d+)\}\$", r"\$\\dfrac\{(\d+)\}\{(\d+)\}\$")
DICE = re.compile(
    r"I have these dice: ([\dd, ]+)\. What are the odds of rolling (\d+) or higher\? \(Assume that all dice are rolled at once, "
    r"and that '1d6' represents one roll of a 6-sided dice\.\) Please respond with a reduced fraction representing the "
    r"probability \[ex\., 1/60\]\."
)
SIZES = re.compile(
    r"Your task is to pick the largest/smallest number out of several options\.\n\n"
    r"Your output should be only the number of interest\.\n\n"
    r"Now, pick the (largest|smallest) number of the following candidates: ([-\d.,e+ ]+)\n?"
)
LEGS = re.compile(
    r"Your task is to count how many legs there are in total when given a list of animals\.\n\n"
    r"Now, how many legs are there in total if you have ([\w, ]+)\?\n?"
)
ANIMAL = re.compile(r"(\d+) ([a-z ]+)")
LAST_DIGIT = Fraction(1, 1_000_000)  # of the candidates' numbers: the generator's floats differ from them by less
ANIMALS = {
    0: "snake, sea slug, jellyfish, flatworm, leech",
    2: "chicken, bird, human, duck",
    4: "dog, cat, cow, horse, lion, elephant, giraffe, tiger, deer, sheep",
    5: "starfish",  # by a common simplification: these are arms
    6: "insect, ant, butterfly, beetle, bee, wasp, grasshopper, cricket, cockroach, praying mantis, firefly",
    8: "spider, scorpion",
    10: "crab, lobster, shrimp",
    14: "woodlouse",
}
LEGS_OF_ANIMAL = {animal: legs for legs, animals in ANIMALS.items() for animal in animals.split(", ")}


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(", ")]


def _is_integer(key: str, truth: int) -> bool:
    return re.fullmatch(r"-?\d+", key) is not None and int(key) == truth


def count_bits(question: str, key: str) -> bool:
    number, bits = int(read(BITS, question)[1]), 0
    while number:
        number, bit = divmod(number, 2)
        bits += bit
    return _is_integer(key, bits)


def gcd(question: str, key: str) -> bool:
    """The key divides all numbers, and the quotients have nothing in common."""
    numbers = _numbers(read(DIVISOR, question)[1])
    if not re.fullmatch(r"\d+", key) or not int(key):
        return False
    return all(number % int(key) == 0 for number in numbers) and math.gcd(*(number // int(key) for number in numbers)) == 1


def lcm(question: str, key: str) -> bool:
    """All numbers divide the key, and the quotients have nothing in common."""
    numbers = _numbers(read(MULTIPLE, question)[1])
    if not re.fullmatch(r"\d+", key) or not int(key):
        return False
    return all(int(key) % number == 0 for number in numbers) and math.gcd(*(int(key) // number for number in numbers)) == 1


def prime_factorization(question: str, key: str) -> bool:
    number = int(read(FACTORS, question)[1])
    if not re.fullmatch(r"\d+( × \d+)*", key):
        return False
    factors = [int(factor) for factor in key.split(" × ")]
    return math.prod(factors) == number and all(is_prime(factor) for factor in factors)


def fraction_simplification(question: str, key: str) -> bool:
    """The key is an equal fraction in lowest terms, in the style of the question."""
    text = read(SIMPLIFY, question)[1]
    for style in FRACTION_STYLES:
        if fraction := re.fullmatch(style, text):
            answered = re.fullmatch(style, key)
            return answered is not None and _is_reduced(answered[1], answered[2], Fraction(int(fraction[1]), int(fraction[2])))
    raise UnreadableQuestion(f"no fraction: {text[:40]}")


def _is_reduced(numerator: str, denominator: str, truth: Fraction) -> bool:
    return (int(numerator), int(denominator)) == (truth.numerator, truth.denominator)


def dice(question: str, key: str) -> bool:
    match, answered = read(DICE, question), re.fullmatch(PLAIN, key)
    dice_sides = [re.fullmatch(r"1d(\d+)", die) for die in match[1].split(", ")]
    if not all(dice_sides):
        raise UnreadableQuestion(f"no dice: {match[1][:40]}")
    sides = [int(die[1]) for die in dice_sides if die]
    ways = [1] + [0] * sum(sides)  # of rolling each total
    for side_count in sides:
        sums = [0, *itertools.accumulate(ways)]
        ways = [sums[total] - sums[max(0, total - side_count)] for total in range(len(ways))]
    truth = Fraction(sum(ways[int(match[2]) :]), math.prod(sides))
    return answered is not None and _is_reduced(answered[1], answered[2], truth)


def number_format(question: str, key: str) -> bool:
    """The key is the largest or smallest candidate, up to the rounding with which candidates are printed."""
    match = read(SIZES, question)
    candidates = [Fraction(text.replace(",", "")) for text in match[2].split()]
    truth = max(candidates) if match[1] == "largest" else min(candidates)
    return re.fullmatch(r"\d+(\.\d+)?", key) is not None and abs(Fraction(key) - truth) <= LAST_DIGIT


def leg_counting(question: str, key: str) -> bool:
    legs = 0
    for animals in read(LEGS, question)[1].split(", "):
        match = ANIMAL.fullmatch(animals)
        animal = match and (match[2] if match[1] == "1" else match[2].removesuffix("s"))
        if match is None or animal not in LEGS_OF_ANIMAL:
            raise UnreadableQuestion(f"no animal: {animals[:40]}")
        legs += int(match[1]) * LEGS_OF_ANIMAL[animal]
    return _is_integer(key, legs)


ORACLES: dict[str, Oracle] = {
    "count_bits": count_bits,
    "dice": dice,
    "fraction_simplification": fraction_simplification,
    "gcd": gcd,
    "lcm": lcm,
    "leg_counting": leg_counting,
    "number_format": number_format,
    "prime_factorization": prime_factorization,
}
