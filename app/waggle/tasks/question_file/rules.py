"""What every question and answer of a file has to fulfil, on the way in and again after it travelled."""

import hashlib
import re
import unicodedata
from typing import NamedTuple

from waggle.core.message import NOTHING, Figure, Message
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
QUESTION, ANSWER = Message("the question"), Message("the answer")


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


def fault(row: Row, grader: Grader) -> Message:
    """The reason why a row cannot be used, in words that follow a line number; empty if it can."""
    if reason := text_fault(row):
        return reason
    why = grader.check(row.answer)
    return ungradable(row.answer, why) if why else NOTHING


def ungradable(answer: str, reason: str) -> Message:
    """The `reason` of a grader why it cannot grade an answer, with the answer."""
    return Message('the answer "%1" %2', answer[:40], reason)


def text_fault(row: Row) -> Message:
    """The reason why no grader could use a row; empty if it may be used."""
    for name, text, most in ((QUESTION, row.question, LONGEST_QUESTION), (ANSWER, row.answer, LONGEST_ANSWER)):
        if not text:
            return Message("%1 is empty", name)
        if len(text) > most:
            return Message("%1 has %2 characters, more than %3", name, Figure(len(text)), Figure(most))
        if unsound := UNSOUND.search(text):
            return Message("%1 contains %2", name, _character_text(unsound[0]))
        if blank := BLANK.search(text):
            return Message("%1 contains %2, which nobody sees", name, _character_text(blank[0]))
        if not any(unicodedata.category(character)[0] in VISIBLE for character in text):
            return Message("%1 has no visible character", name)
        if tidy(text) != text:
            return Message("%1 has white space around it", name)
    if any(tag in row.answer for tag in TAGS):
        return Message("the answer contains %1 or %2, between which a model writes its own", *TAGS)
    return NOTHING


def _character_text(character: str) -> str:
    return f"U+{ord(character):04X} ({unicodedata.name(character, 'a control character')})"
