"""What every question and answer of a file has to fulfil, on the way in and again after it travelled."""

import hashlib
import re
import unicodedata
from typing import NamedTuple

from waggle.core.text.unsound_text import UNSOUND
from waggle.tasks.graders.interface import Grader
from waggle.tasks.questions import FILE_PREFIX, Split, content_of, split_of
from waggle.tasks.rollout_group import TAGS

LONGEST_QUESTION = 16_000  # characters
LONGEST_ANSWER = 1_000  # characters; new swarms allow completions of 1,200
MOST_QUESTIONS = 50_000  # in one file
BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0]")  # fillers: letters and signs without a picture
VISIBLE = "LNPS"  # Unicode categories: letters, numbers, punctuation, symbols
FEWEST_TRAINABLE = 20  # different questions of a file that are not reserved


class Row(NamedTuple):
    """A question with its true answer."""

    question: str
    answer: str


def tidy(text: str) -> str:
    """The text with one kind of line break and without white space around it."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def identity(question: str) -> str:
    """What equal questions have in common; see `content_of`."""
    return content_of(question)


def place(row: Row) -> bytes:
    """What rows are sorted by: a hash of the question, so that the first rows are like all others."""
    return hashlib.sha256(row.question.encode()).digest()


def split(question: str) -> Split:
    return split_of(FILE_PREFIX, question)


def fault(row: Row, grader: Grader) -> str:
    """The reason why a row cannot be used, in words that follow a line number; empty if it can."""
    if reason := text_fault(row):
        return reason
    reason = grader.check(row.answer)
    return f'the answer "{row.answer[:40]}" {reason}' if reason else ""


def text_fault(row: Row) -> str:
    """The reason why no grader could use a row; empty if it may be used."""
    for name, text, most in (("question", row.question, LONGEST_QUESTION), ("answer", row.answer, LONGEST_ANSWER)):
        if not text:
            return f"the {name} is empty"
        if len(text) > most:
            return f"the {name} has {len(text):,} characters, more than {most:,}"
        if unsound := UNSOUND.search(text):
            character = unsound[0]
            return f"the {name} contains U+{ord(character):04X} ({unicodedata.name(character, 'a control character')})"
        if blank := BLANK.search(text):
            return f"the {name} contains U+{ord(blank[0]):04X} ({unicodedata.name(blank[0])}), which nobody sees"
        if not any(unicodedata.category(character)[0] in VISIBLE for character in text):
            return f"the {name} has no visible character"
        if tidy(text) != text:
            return f"the {name} has white space around it"
    if any(tag in row.answer for tag in TAGS):
        return f"the answer contains {' or '.join(TAGS)}, between which a model writes its own"
    return ""
