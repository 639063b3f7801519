"""Oracles of algorithms on strings of letters without meaning: swaps, palindromes and replacements."""

import json
from collections import Counter

from waggle_lab.truth.interface import Oracle
from waggle_lab.truth.question_text import Wording

LETTERS = "[a-z]+"
ALTERNATION = Wording(
    """Given a binary string, return the minimum number of character swaps to make it alternating, or -1 if it is impossible.

The string is called alternating if no two adjacent characters are equal. For example, the strings "010" and "1010" are \
alternating, while the string "0100" is not.

Any two characters may be swapped, even if they are not adjacent.

Now, determine the minimum number of swaps to make the following binary string alternating: «bits»
""",
    bits="[01]+",
)
ISOMORPHISM = Wording(
    """Two strings are isomorphic if the characters in one string can be replaced to get the second string.

All occurrences of a character must be replaced with another character while preserving the order of characters.

No two characters may map to the same character, but a character may map to itself.

Return True if the following two strings are isomorphic, or False otherwise:
«first» «second»
""",
    first=LETTERS,
    second=LETTERS,
)
PALINDROME = Wording(
    """Your task is, given a list of letters, to form a valid palindrome.

A palindrome is a phrase that reads the same forwards and backwards.

If there are multiple possible answers, only respond with one of them. You must use all the letters provided.

Your output should be a single string, with no spaces or punctuation.

Now, form a valid palindrome using the following letters: «letters»
""",
    letters="[a-z](?:, [a-z])*",
)
PARTITIONS = Wording(
    """Given a string, partition it such that every substring is a palindrome.

A palindrome is a word that reads the same backward as forward.

You may return all possible palindrome partitioning in any order.

Your output should be a list of lists, where each list represents a palindrome partition, e.g. [["a","a","b"],["aa","b"]].

Partition the following string into palindromes: «text»
""",
    text=LETTERS,
)
RANSOM = Wording(
    """Given two strings representing a ransom note and a magazine, return True if you can construct the ransom note using the \
letters in the magazine, and False otherwise.

Each letter in the magazine string can only be used once in your ransom note.

Ransom note: «note»
Magazine: «magazine»
""",
    note=LETTERS,
    magazine=LETTERS,
)


def binary_alternation(question: str, key: str) -> bool:
    """Whether the key is the fewest swaps to either alternating string with as many ones: a swap mends two places."""
    bits = ALTERNATION.read(question)["bits"]
    targets = [("01" * len(bits))[: len(bits)], ("10" * len(bits))[: len(bits)]]
    swaps = [
        sum(bit > wish for bit, wish in zip(bits, target, strict=True))  # ones in places of zeros
        for target in targets
        if target.count("1") == bits.count("1")
    ]
    return key == str(min(swaps, default=-1))


def isomorphic_strings(question: str, key: str) -> bool:
    """Whether the key says that the pairs of characters are a one-to-one mapping."""
    parts = ISOMORPHISM.read(question)
    first, second = parts["first"], parts["second"]
    pairs = set(zip(first, second, strict=False))
    truth = len(first) == len(second) and len(pairs) == len(set(first)) == len(set(second))
    return key == str(truth)


def palindrome_generation(question: str, key: str) -> bool:
    """Whether the key is a palindrome of all the letters. There may be others."""
    letters = PALINDROME.read(question)["letters"].split(", ")
    return key == key[::-1] and Counter(key) == Counter(letters)


def _partitions(text: str) -> list[list[str]]:
    if not text:
        return [[]]
    heads = (text[:end] for end in range(1, len(text) + 1))
    return [[head, *rest] for head in heads if head == head[::-1] for rest in _partitions(text[len(head) :])]


def palindrome_partitioning(question: str, key: str) -> bool:
    """Whether the key lists all partitions, each once, in any order."""
    partitions = _partitions(PARTITIONS.read(question)["text"])
    try:
        return sorted(json.loads(key)) == sorted(partitions)
    except (TypeError, ValueError):
        return False


def ransom_note(question: str, key: str) -> bool:
    """Whether the key says that the magazine has each letter of the note often enough."""
    parts = RANSOM.read(question)
    return key == str(Counter(parts["note"]) <= Counter(parts["magazine"]))


ORACLES: dict[str, Oracle] = {
    "binary_alternation": binary_alternation,
    "isomorphic_strings": isomorphic_strings,
    "palindrome_generation": palindrome_generation,
    "palindrome_partitioning": palindrome_partitioning,
    "ransom_note": ransom_note,
}
