"""Questions and their ids. From an id, every node can generate the question and its answer."""

import hashlib
from typing import Literal

import msgspec

EPOCH_SECONDS = 600
RESERVED_BELOW = 26  # of 256 values of a hash byte: about a tenth of all questions is never trained on

Split = Literal["train", "dev", "test", "none"]


class QuestionId(msgspec.Struct, frozen=True, array_like=True):
    """(dataset, epoch, index), never a seed: so nobody can pick easy questions, or claim those of another node."""

    dataset: str
    epoch: int
    index: int


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a question, and the seed from which the verifier generates it and its answer.

    `text` is empty if the dataset fails for this seed: tsumego gives up on one of twenty hard questions.
    """

    dataset: str
    seed: int
    text: str


def epoch_at(unix_time: float) -> int:
    """The number of the ten-minute interval that contains this unix time."""
    return int(unix_time // EPOCH_SECONDS)


def seed_of(charter: bytes, origin: bytes, question: QuestionId) -> int:
    """The first 63 bits of SHA-256 over (charter, origin peer id, dataset, epoch, index), each with its length before it."""
    digest = hashlib.sha256(b"waggle/question/1")
    for part in (charter, origin, question.dataset.encode(), b"%d" % question.epoch, b"%d" % question.index):
        digest.update(len(part).to_bytes(4, "big") + part)
    return int.from_bytes(digest.digest()[:8], "big") >> 1


def split_of(dataset: str, text: str) -> Split:
    """The split of a question, from a hash of its content: train, or reserved as dev (for tuning) or test (for reports).

    A question without text belongs to none.
    """
    if not text:
        return "none"
    digest = hashlib.sha256(f"waggle/heldout/1|{dataset}|{text}".encode()).digest()
    if digest[0] >= RESERVED_BELOW:
        return "train"
    return "dev" if digest[1] < 128 else "test"
