"""Deductions from statements about letters: is the last one true, false or unknown?

Each answer is right for a third of the questions. Where one follows, half of the links are equivalences, so that neither the fact
nor a link alone gives it away.
"""

from itertools import pairwise
from random import Random

from waggle.core.message import Message
from waggle.tasks.specialties.interface import Dataset, Entry

LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"  # without I and O, which look like numbers
TRUTH = {True: "true", False: "false", None: "unknown"}


def generate(rng: Random, *, links: int = 2, others: int = 1) -> Entry:
    """A chain of this many links that starts at a fact, with `others` statements about letters outside the chain."""
    letters = rng.sample(LETTERS, links + 1 + others)
    chain, outside = letters[: links + 1], letters[links + 1 :]
    answer = rng.choice((True, False, None))
    values = [rng.random() < 0.5 for _ in range(links)] + [rng.random() < 0.5 if answer is None else answer]
    broken = rng.randrange(links) if answer is None else -1
    premises = [_says(chain[0], values[0])]
    for place, (first, second) in enumerate(pairwise(zip(chain, values, strict=True))):
        if place != broken and rng.random() < 0.5:
            premises.append(_equivalence(rng, first, second))
        else:
            premises.append(_disjunction(rng, (first[0], first[1] == (place == broken)), second))
    for letter in outside:  # true of one side whatever the other is: it decides nothing about the chain
        premises.append(_disjunction(rng, (letter, rng.random() < 0.5), (rng.choice(chain), rng.random() < 0.5)))
    rng.shuffle(premises)
    lines = [*(f"{premise}." for premise in premises), Message("Is %1 true, false or unknown? Answer with one word.", chain[-1])]
    return Entry(question="\n".join(lines), answer=TRUTH[answer])


def _says(letter: str, value: bool) -> str:
    return f"{letter} is {TRUTH[value]}"


def _equivalence(rng: Random, first: tuple[str, bool], second: tuple[str, bool]) -> str:
    """That two letters have the same value or different values."""
    letters = [first[0], second[0]]
    rng.shuffle(letters)
    if first[1] == second[1]:
        return f"{letters[0]} and {letters[1]} are both true or both false"
    return f"Exactly one of {letters[0]} and {letters[1]} is true"


def _disjunction(rng: Random, first: tuple[str, bool], second: tuple[str, bool]) -> str:
    """That the first letter has its value, or the second, or both: as a condition, or of both at once."""
    if first[1] == second[1] and rng.random() < 0.5:
        letters = [first[0], second[0]]
        rng.shuffle(letters)
        return f"At least one of {letters[0]} and {letters[1]} is {TRUTH[first[1]]}"
    condition, consequence = (first, second) if rng.random() < 0.5 else (second, first)
    return f"If {condition[0]} is {TRUTH[not condition[1]]}, then {_says(*consequence)}"


DATASET = Dataset(
    title="Logic",
    topic="logic",
    generate=generate,
    levels={"easy": {"links": 1, "others": 0}, "standard": {}, "hard": {"links": 4, "others": 2}},
)
