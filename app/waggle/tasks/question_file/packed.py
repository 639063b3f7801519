"""The form in which questions travel: sorted JSON lines in zstd, cut into pieces that are named by their SHA-256.

Equal questions and answers give equal pieces with the same zstd. Unpacking trusts nothing, and happens in the verifier's child:
its parent only compares sizes and hashes.
"""

import hashlib
from collections.abc import Iterable, Sequence

import msgspec
import zstandard

from waggle.core.errors import UNREADABLE, QuestionFileError
from waggle.core.message import Figure, Message
from waggle.tasks.graders import graders
from waggle.tasks.question_file import rules
from waggle.tasks.question_file.description import MOST_PIECES, PIECE_BYTES, SAMPLE_CHARACTERS, QuestionFile
from waggle.tasks.question_file.rules import FEWEST_TRAINABLE, MOST_QUESTIONS, Row

MOST_UNPACKED = 32 << 20  # bytes
WINDOW = 8 << 20  # bytes, of the compressor and at most of the decompressor: a file cannot choose how much memory it takes
ZSTD_LEVEL = 12
NEW_FILE = "Ask whoever created the swarm: the file has to be made anew with this Waggle."

_decoder: msgspec.json.Decoder[Row] = msgspec.json.Decoder(Row)


def pack(rows: Iterable[Row]) -> tuple[bytes, ...]:
    """The pieces of a file with these rows, which fulfil the rules. Raises QuestionFileError if they are too many."""
    lines = [msgspec.json.encode(row) + b"\n" for row in sorted(rows, key=rules.place)]
    raw = b"".join(lines)
    if len(raw) > MOST_UNPACKED or len(lines) > MOST_QUESTIONS:
        raise QuestionFileError(
            Message("The questions and answers are too many: %1 with %2 bytes.", Figure(len(lines)), Figure(len(raw))),
            Message("A file may have %1 questions and %2 MiB. Leave some out.", Figure(MOST_QUESTIONS), MOST_UNPACKED >> 20),
        )
    parameters = zstandard.ZstdCompressionParameters.from_level(ZSTD_LEVEL, window_log=WINDOW.bit_length() - 1)
    packed = zstandard.ZstdCompressor(compression_params=parameters).compress(raw)
    if len(packed) > MOST_PIECES * PIECE_BYTES:
        raise QuestionFileError(
            Message("The questions take %1 bytes when compressed.", Figure(len(packed))),
            Message("A file may take %1 MiB. Leave some questions out, or shorten them.", MOST_PIECES),
        )
    return tuple(packed[start : start + PIECE_BYTES] for start in range(0, len(packed), PIECE_BYTES))


def piece_hash(piece: bytes) -> str:
    return hashlib.sha256(piece).hexdigest()


def joined(pieces: Sequence[bytes], file: QuestionFile) -> bytes:
    """The packed file. Raises QuestionFileError unless sizes and hashes are those that the charter names."""
    if len(pieces) != len(file.pieces):
        raise QuestionFileError("The questions of this swarm are not complete.", "They have to be downloaded again.")
    for i, (piece, digest) in enumerate(zip(pieces, file.pieces, strict=True)):
        if len(piece) != file.piece_bytes(i) or piece_hash(piece) != digest:
            raise QuestionFileError(Message("Piece %1 of the questions is damaged.", i + 1), "It has to be downloaded again.")
    return b"".join(pieces)


def unpack(packed: bytes, file: QuestionFile) -> tuple[Row, ...]:
    """The rows of a packed file, in its order. Raises QuestionFileError if anything is not as `pack` and the rules want it."""
    lines = _decompress(packed).split(b"\n")
    if lines.pop() or len(lines) != file.questions:
        raise _refusal(Message("it does not have the %1 questions that the charter names", Figure(file.questions)))
    grader = graders().get(file.grader)
    if grader is None:
        raise _refusal(Message("it needs the grader %1", file.grader))
    rows: list[Row] = []
    before, identities = b"", set[str]()
    for number, line in enumerate(lines, start=1):
        row = _row(line)
        if row is None:
            raise _refusal(Message("line %1 is malformed", number))
        if reason := rules.fault(row, grader):
            raise _refusal(Message("line %1: %2", number, reason))
        here = rules.place(row)
        if here <= before or rules.identity(row.question) in identities:
            raise _refusal(Message("line %1 is out of order, or a question again", number))
        before = here
        identities.add(rules.identity(row.question))
        rows.append(row)
    _check_samples(rows, file)
    return tuple(rows)


def _decompress(packed: bytes) -> bytes:
    try:
        size = zstandard.frame_content_size(packed)
        if not 0 < size <= MOST_UNPACKED:  # -1: a frame that does not say its size
            raise _refusal(Message("its size is not allowed"))
        decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW)
        return decompressor.decompress(packed, max_output_size=size, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise _refusal(Message("it is not compressed as agreed")) from error


def _row(line: bytes) -> Row | None:
    try:
        row = _decoder.decode(line)
        return row if msgspec.json.encode(row) == line else None
    except UNREADABLE:
        return None


def _check_samples(rows: Sequence[Row], file: QuestionFile) -> None:
    beginnings = {row.question[:SAMPLE_CHARACTERS] for row in rows}
    if not beginnings.issuperset(file.samples):
        raise _refusal(Message("the samples in the charter are no questions of it"))
    if (trainable := sum(rules.split(row.question) == "train" for row in rows)) < FEWEST_TRAINABLE:
        raise _refusal(Message("only %1 of its questions are not reserved, and %2 are needed", trainable, FEWEST_TRAINABLE))


def _refusal(reason: Message) -> QuestionFileError:
    return QuestionFileError(Message("The file with the questions is refused: %1.", reason), NEW_FILE)
