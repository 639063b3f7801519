"""Questions and their ids. From an id, every node can generate the question and its answer."""

import hashlib
from typing import Literal, NamedTuple

import msgspec

from waggle.tasks.answer_text import composed

EPOCH_SECONDS = 600
FILE_PREFIX = "file_"  # of the names of datasets that are files of people's own questions
RESERVED_BELOW = 26  # of 256 values of a hash byte: about a tenth of all questions is never trained on

Split = Literal["train", "dev", "test", "none"]


class QuestionKey(NamedTuple):
    """What the verifier makes a question from. `level` is the place of its settings among the charter's levels of the dataset."""

    dataset: str
    seed: int
    level: int = 0


class QuestionId(msgspec.Struct, frozen=True, array_like=True):
    """A node's question with this `number` in an epoch: a number and never a seed, so nobody can claim those of another node.

    A node uses each number once, whatever it asks about, and no number beyond the charter's `questions_per_epoch`. So skipping
    questions until one suits uses up numbers, and nobody can choose freely what to teach.
    """

    dataset: str
    epoch: int
    number: int
    level: int = 0

    def key(self, charter: bytes, origin: bytes) -> QuestionKey:
        """The question of this id for a node. Its seed: 63 bits of a SHA-256 over all parts, each after its length."""
        digest = hashlib.sha256(b"waggle/question/2")
        numbers = (b"%d" % number for number in (self.level, self.epoch, self.number))
        for part in (charter, origin, self.dataset.encode(), *numbers):
            digest.update(len(part).to_bytes(4, "big") + part)
        return QuestionKey(self.dataset, int.from_bytes(digest.digest()[:8], "big") >> 1, self.level)


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a question, and what the verifier makes it and its answer from.

    `text` is empty if the dataset fails for this seed: tsumego gives up on one of twenty hard questions.
    """

    dataset: str
    seed: int
    text: str
    level: int = 0

    @property
    def key(self) -> QuestionKey:
        return QuestionKey(self.dataset, self.seed, self.level)


def epoch_at(unix_time: float) -> int:
    """The number of the ten-minute interval that contains this unix time."""
    return int(unix_time // EPOCH_SECONDS)


def content_of(question: str) -> str:
    """What equal questions of people have in common: their words, whatever the white space and the form of a character."""
    return " ".join(composed(question).split())


def split_of(dataset: str, text: str) -> Split:
    """The split of a question, from a hash of its content: train, or reserved as dev (for tuning) or test (for reports).

    A question without text belongs to none. People's own questions have the same split in every file, because a corrected file
    has another name, and whatever the white space and the form of a character.
    """
    if not text:
        return "none"
    name = dataset
    if dataset.startswith(FILE_PREFIX):
        name, text = FILE_PREFIX, content_of(text)
    digest = hashlib.sha256(f"waggle/heldout/1|{name}|{text}".encode()).digest()
    if digest[0] >= RESERVED_BELOW:
        return "train"
    return "dev" if digest[1] < 128 else "test"
