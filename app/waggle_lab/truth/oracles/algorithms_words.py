"""Oracles of algorithms on English words: ciphers, letters and orders.

letter_jumble and sentence_reordering have none: which of several words or orders was meant is not in their questions.
"""

import math
from itertools import pairwise

from waggle_lab.truth.interface import Oracle, UnreadableQuestion
from waggle_lab.truth.question_text import Wording

WORD_LIST = r"\w+(?:, \w+)*"
CAESAR = Wording(
    "Decrypt this Caesar cipher text: «cipher». Provide only the decrypted text as your final answer.", cipher="[^.]+"
)
COUNTING = Wording('How many times does the letter "«letter»" appear in the text: "«text»"?', letter=r"\w", text=r"\w+(?: \w+)*")
BACKWARD = Wording("Spell this word backward (example: sun -> nus): «word»", word=r"\w+")
REVERSAL = Wording(
    """Solve the following problem.

Provide you answer as a comma-separated list of words with a space after the comma.

Reverse this list of words: «words»
""",
    words=WORD_LIST,
)
SORTING = Wording(
    """Your task is to sort words in ascending or descending order using ASCII/Unicode ordering.

Your output should be a comma-separated list of words, e.g. word_1, word_2, word_3

Now, sort these words in «direction» order (using ASCII/Unicode ordering) and return them as a comma-separated list: «words»
""",
    direction="ascending|descending",
    words=WORD_LIST,
)

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# Percentages of the letters A to Z in English prose: R. Lewand, Cryptological Mathematics, 2000.
SHARES = (8.167, 1.492, 2.782, 4.253, 12.702, 2.228, 2.015, 6.094, 6.966, 0.153, 0.772, 4.025, 2.406,
          6.749, 7.507, 1.929, 0.095, 5.987, 6.327, 9.056, 2.758, 0.978, 2.360, 0.150, 1.974, 0.074)  # fmt: skip
COMMON_WORDS = (
    "A ABOUT ALL AM AN AND ANY ARE AS AT BE BEEN BUT BY CAN COULD DAY DID DO FOR FROM HAD HAS HAVE HE HER HERE HIM HIS HOW "
    "I IF IN INTO IS IT ITS JUST LIKE MAN ME MORE MR MY NO NOT NOW OF ON ONE OR OTHER OUR OUT PLEASE SAID SEE SHALL SHE SO "
    "SOME THAT THE THEIR THEM THEN THERE THESE THEY THIS TIME TO TWO UP US WAS WE WELL WERE WHAT WHEN WHICH WHO WILL WITH "
    "WORK WOULD YEARS YES YOU YOUR"
)
COMMON = frozenset(COMMON_WORDS.split())
PLAIN_MARGIN = 4.0  # natural logarithm of how much likelier the best reading must be than the next


def _shifted(text: str, shift: int) -> str:
    return "".join(ALPHABET[(ALPHABET.index(sign) + shift) % 26] if sign in ALPHABET else sign for sign in text)


def _likelihood(text: str) -> float:
    """How much a text looks like English, as a logarithm: of its letters, and of its words where they are common ones."""
    letters = sum(math.log(SHARES[ALPHABET.index(sign)] / 100) for sign in text if sign in ALPHABET)
    words = sum(len(word) * 1.5 for word in text.split() if word in COMMON)
    return letters + words


def caesar_cipher(question: str, key: str) -> bool:
    """Whether the key is the one shift of the text that is English. Raises UnreadableQuestion if none is by far the likeliest."""
    cipher = CAESAR.read(question)["cipher"]
    if any(sign not in ALPHABET for sign in cipher if sign != " "):
        raise UnreadableQuestion(cipher)
    (best, plain), (second, _) = sorted((_likelihood(text), text) for text in (_shifted(cipher, n) for n in range(26)))[:-3:-1]
    if best - second < PLAIN_MARGIN:
        raise UnreadableQuestion(cipher)
    return key == plain


def letter_counting(question: str, key: str) -> bool:
    """Whether the key is the number of times that the letter appears, small or capital: both are the same letter."""
    parts = COUNTING.read(question)
    letter = parts["letter"]
    return key == str(sum(sign in (letter.lower(), letter.upper()) for sign in parts["text"]))


def spell_backward(question: str, key: str) -> bool:
    """Whether the first letter of the key is the last of the word, and so on."""
    word = BACKWARD.read(question)["word"]
    return len(key) == len(word) and all(key[place] == word[-1 - place] for place in range(len(word)))


def word_sequence_reversal(question: str, key: str) -> bool:
    """Whether the first word of the key is the last of the list, and so on."""
    words, answer = REVERSAL.read(question)["words"].split(", "), key.split(", ")
    return len(answer) == len(words) and all(answer[place] == words[-1 - place] for place in range(len(words)))


def word_sorting(question: str, key: str) -> bool:
    """Whether the key has the same words and each neighbour is in order of code points."""
    parts = SORTING.read(question)
    words, answer = parts["words"].split(", "), key.split(", ")
    points = [[ord(sign) for sign in word] for word in answer]
    in_order = all(a <= b if parts["direction"] == "ascending" else a >= b for a, b in pairwise(points))
    return in_order and sorted(words) == sorted(answer)


ORACLES: dict[str, Oracle] = {
    "caesar_cipher": caesar_cipher,
    "letter_counting": letter_counting,
    "spell_backward": spell_backward,
    "word_sequence_reversal": word_sequence_reversal,
    "word_sorting": word_sorting,
}
