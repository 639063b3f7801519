"""Questions: named by three small numbers on the wire, so that anyone can regenerate them and their answers."""

import hashlib
from typing import Literal

import msgspec

EPOCH_SECONDS = 600
RESERVED_BELOW = 26  # of 256: about one question in ten is never trained on, anywhere

Split = Literal["train", "dev", "test", "none"]


class QuestionId(msgspec.Struct, frozen=True, array_like=True):
    """(dataset, epoch, index): never a seed, so nobody can choose an easy question or present another's as their own."""

    dataset: str
    epoch: int
    index: int


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question as a policy reads it. `seed` is what the verifier regenerates its answer from.

    Without text where the dataset makes none of this seed: tsumego gives up on one in twenty of its hard ones.
    """

    dataset: str
    seed: int
    text: str


def epoch_at(unix_time: float) -> int:
    """The ten minutes a moment falls into."""
    return int(unix_time // EPOCH_SECONDS)


def seed_of(charter: bytes, origin: bytes, question: QuestionId) -> int:
    """The first 63 bits of sha256 over (charter, origin peer id, dataset, epoch, index), each length-prefixed."""
    digest = hashlib.sha256(b"waggle/question/1")
    for part in (charter, origin, question.dataset.encode(), b"%d" % question.epoch, b"%d" % question.index):
        digest.update(len(part).to_bytes(4, "big") + part)
    return int.from_bytes(digest.digest()[:8], "big") >> 1


def split_of(dataset: str, text: str) -> Split:
    """Where a question belongs, decided by its content alone: train, or reserved as dev (defaults) or test (reports).

    One without text belongs nowhere.
    """
    if not text:
        return "none"
    digest = hashlib.sha256(f"waggle/heldout/1|{dataset}|{text}".encode()).digest()
    if digest[0] >= RESERVED_BELOW:
        return "train"
    return "dev" if digest[1] < 128 else "test"
