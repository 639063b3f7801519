"""What a name that a stranger chose may consist of, by Unicode category. The stranger's message is read without the rest.

Allowed are letters of every script, those written from right to left too, numbers, punctuation, symbols, and single spaces.
Left out is what cannot be seen, or changes how others look, because two names could look the same by it: control and format
characters (C), among them those that change the direction; separators (Z) except the space; letters and signs that are blank.

Marks (M) are allowed where a script needs them: at most two behind a letter of the same script, as in Hindi, Thai, Hebrew or
Arabic. The general stock of combining marks is refused, after everything was composed that has a letter of its own: an accent
stays in its letter, a pile of accents does not.
"""

import re
import unicodedata

# Letters, marks and signs that are blank although their category says otherwise: the fillers of Hangul, Khmer, Khitan and
# hieroglyphs, the joiner of Tifinagh, the empty braille pattern, the null notehead, the place of an object, and the selectors of
# variants of Mongolian and of all scripts.
BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u2d7f\u3164\ufe00-\ufe0f\uffa0\ufffc\ufffd"
    "\U00013441\U00013442\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)
PLAIN = "LNPS"  # categories whose characters stand for themselves
MOST_MARKS = 2  # behind one letter


def legible(name: str) -> str:
    """The name without what is refused in it: the same for every name that consists of what is allowed."""
    if name.isascii() and name.isprintable():
        return " ".join(name.split())
    letters: list[str] = []
    marks = 0
    for character in unicodedata.normalize("NFC", BLANK.sub("", name)):
        kind = unicodedata.category(character)[0]
        if kind in PLAIN:
            marks = 0
        elif kind == "M":
            marks += 1
            if marks > MOST_MARKS or not letters or not _of_one_script(letters[-1], character):
                continue
        elif not character.isspace():
            continue
        letters.append(character)
    return " ".join(unicodedata.normalize("NFC", "".join(letters)).split())


def _of_one_script(before: str, mark: str) -> bool:
    """Whether the mark belongs to the script of what stands before it; the names of both begin with the script's name."""
    script, rest = _words(mark)[:1], _words(mark)[1:]
    return bool(rest) and script == _words(before)[:1] and script != ["COMBINING"]


def _words(character: str) -> list[str]:
    return unicodedata.name(character, "").split()
