"""What a charter says of a file of questions: the hashes of its pieces, its size and how answers are graded."""

import hashlib
from typing import Annotated

import msgspec

from waggle.core.text.unsound_text import UNSOUND
from waggle.tasks.graders import grader_names
from waggle.tasks.question_file.rules import BLANK, FEWEST_TRAINABLE, MOST_QUESTIONS
from waggle.tasks.questions import FILE_PREFIX

PIECE_BYTES = 1 << 20  # of every piece but the last
MOST_PIECES = 8
LARGEST_TOLERANCE = 1e9
MOST_SAMPLES = 3
SAMPLE_CHARACTERS = 300
NAME_DIGITS = 16  # hexadecimal digits of a dataset's name: 64 bits

PieceHash = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
Sample = Annotated[str, msgspec.Meta(min_length=1, max_length=SAMPLE_CHARACTERS)]


class QuestionFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A packed file of questions, named by the SHA-256 of its pieces.

    `samples` are questions of the file, or their first 300 characters, for an invite to show before the file was downloaded.
    """

    pieces: Annotated[tuple[PieceHash, ...], msgspec.Meta(min_length=1, max_length=MOST_PIECES)]
    packed_bytes: Annotated[int, msgspec.Meta(ge=1, le=MOST_PIECES * PIECE_BYTES)] = msgspec.field(name="bytes")
    questions: Annotated[int, msgspec.Meta(ge=FEWEST_TRAINABLE, le=MOST_QUESTIONS)]
    grader: Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,31}\Z")]
    tolerance: Annotated[float, msgspec.Meta(ge=0.0, le=LARGEST_TOLERANCE)] = 0.0
    samples: Annotated[tuple[Sample, ...], msgspec.Meta(max_length=MOST_SAMPLES)] = ()

    @property
    def dataset(self) -> str:
        """The name of the file as a dataset: other pieces, another grader or tolerance give another name."""
        content = msgspec.json.encode((self.pieces, self.grader, self.tolerance))
        return FILE_PREFIX + hashlib.sha256(content).hexdigest()[:NAME_DIGITS]

    def piece_bytes(self, piece: int) -> int:
        """The size of a piece; every piece but the last has 1 MiB."""
        return min(PIECE_BYTES, self.packed_bytes - piece * PIECE_BYTES)

    def fault(self) -> str:
        """The reason why a charter may not have this file, in words that follow its title; empty if it may."""
        if len(self.pieces) != -(-self.packed_bytes // PIECE_BYTES):
            return "has a size that does not fit its pieces"
        if self.grader not in grader_names():
            return f"needs the grader {self.grader}, which this Waggle does not have"
        if any(UNSOUND.search(sample) or BLANK.search(sample) for sample in self.samples):
            return "has samples with hidden characters"
        return ""
