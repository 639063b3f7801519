"""The training journal: the training sets since the last checkpoint, a few kilobytes a round, so that they can be learned again.

    journal-rNNNNNNNN   follows the checkpoint of that round: length, SHA-256, entry; length, SHA-256, entry ...

A checkpoint every round would wear out a disk; with fewer ones, a kill would lose rounds. Learning the same training sets again
with the same number of CPU threads gives the same weights bit for bit. On CUDA and Metal, which add in no fixed order, they are
close. Each entry is flushed; an incomplete last one is ignored.
"""

import hashlib
import os
import re
import shutil
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise, zip_longest
from pathlib import Path

import msgspec
import numpy as np
import zstandard

from waggle.core.errors import UNREADABLE
from waggle.core.paths import flush
from waggle.core.system import file_moves
from waggle.models.storage.checkpoint import CheckpointState, is_of
from waggle.rl.batch import Floats, StepMetrics, StepParams, TrainingGroup, nothing
from waggle.rl.objective import Clip, Ratio

NAME = re.compile(r"^journal-r(\d{8})\Z")
HEAD = struct.Struct("<I32s")
LARGEST = 64 << 20  # bytes of one entry; a longer one is damaged
Learn = Callable[[Sequence[TrainingGroup], StepParams], StepMetrics]


class JournaledGroup(msgspec.Struct, frozen=True, array_like=True):
    """A training group as little-endian bytes: int32 tokens, float32 numbers."""

    prompt: bytes
    completions: list[bytes]
    advantage: bytes
    weight: bytes
    old_logp: bytes | None
    returns: bytes | None


class LaterStep(msgspec.Struct, frozen=True, array_like=True):
    """A step of a round after its first one. What it does not hold is as in the first."""

    lessons: list[JournaledGroup]
    learning_rate: float
    values: list[bytes]


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One round: the state after it and its steps. Without lessons there was no step."""

    saved: CheckpointState
    lessons: list[JournaledGroup] = []
    learning_rate: float = 0.0
    temperature: float = 1.0
    clip: tuple[float, float] = (0.0, 0.0)
    value_share: float = 0.0
    max_gradient_norm: float = 1.0
    ratio: Ratio = "token"
    value_clip: float | None = None
    values: list[bytes] = []  # of each lesson, float32; empty: no lesson has any
    later_steps: list[LaterStep] = []


Step = tuple[Sequence[TrainingGroup], StepParams]


def entry_of(saved: CheckpointState, steps: Sequence[Step]) -> JournalEntry:
    """The entry of a round with these steps, which differ in their batches and learning rates only."""
    if not steps:
        return JournalEntry(saved=saved)
    (batches, params), *later = steps
    return JournalEntry(
        saved=saved,
        lessons=[_lesson(batch) for batch in batches],
        values=_values(batches),
        later_steps=[LaterStep([_lesson(batch) for batch in some], each.learning_rate, _values(some)) for some, each in later],
        learning_rate=params.learning_rate,
        temperature=params.temperature,
        clip=(params.clip.low, params.clip.high),
        value_share=params.value_share,
        max_gradient_norm=params.max_gradient_norm,
        ratio=params.ratio,
        value_clip=params.value_clip,
    )


def append(root: Path, after: int, entry: JournalEntry) -> int:
    """Append an entry to the journal of checkpoint `after` and flush it. Returns the bytes written. Raises OSError."""
    body = zstandard.ZstdCompressor().compress(msgspec.msgpack.encode(entry))
    line = HEAD.pack(len(body), hashlib.sha256(body).digest()) + body
    # Unbuffered: after an error, a buffer would be written once more, before the file is truncated.
    with (root / f"journal-r{after:08d}").open("ab", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        try:
            written = 0
            while written < len(line):  # a nearly full disk writes a part before it fails
                written += file.write(line[written:])
            os.fsync(file.fileno())
            if not end:
                flush(root)  # makes the name of a new file durable
        except OSError:  # or the next entry would follow an incomplete one
            file.truncate(end)
            raise
    return len(line)


def entries(root: Path, after: int, base: str) -> Iterator[JournalEntry]:
    """The entries after round `after`, in order; stops at the first that is missing or damaged."""
    for path in _files(root):
        for entry, _ in _read(path):
            if entry.saved.round == after + 1 and is_of(entry.saved, base):
                after += 1
                yield entry


def learn_again(learn: Learn, entry: JournalEntry, pause_point: Callable[[], None] = nothing) -> None:
    """Take the steps of an entry. Raises Stopped from the pause point, before or between two of them."""
    pause_point()
    if not entry.lessons:
        return
    params = StepParams(
        learning_rate=entry.learning_rate,
        temperature=entry.temperature,
        clip=Clip(*entry.clip),
        value_share=entry.value_share,
        max_gradient_norm=entry.max_gradient_norm,
        ratio=entry.ratio,
        value_clip=entry.value_clip,
        pause_point=pause_point,
    )
    learn(_batches(entry.lessons, entry.values), params)
    for step in entry.later_steps:
        learn(_batches(step.lessons, step.values), replace(params, learning_rate=step.learning_rate))


def mend(root: Path, after: int) -> Path | None:
    """Truncate a journal after its last readable entry, so that new entries can follow. Raises OSError.

    Returns the path of a copy of the whole journal, or None if the rest is only an entry that a kill left incomplete.
    """
    path, aside = root / f"journal-r{after:08d}", None
    if not path.exists():
        return None
    readable = sum(size for _, size in _read(path))
    if not _ends_torn(path, readable):
        aside = path.with_name(f"damaged-{path.name}")
        shutil.copyfile(path, aside)
    if readable < path.stat().st_size:
        os.truncate(path, readable)
    return aside


def set_aside(root: Path, above: int = -1) -> list[Path]:
    """Rename all journals of checkpoints after round `above`; return their new paths. Raises OSError."""
    lost = [path for path in _files(root) if _round_of(path) > above]
    return [file_moves.replace(path, path.with_name(f"damaged-{path.name}")) for path in lost]


def newest(root: Path) -> int:
    """The checkpoint round of the newest journal; 0 if there is none."""
    return max((_round_of(path) for path in _files(root)), default=0)


def forget(root: Path, before: int) -> None:
    """Remove journals whose rounds are contained in the checkpoint of round `before`. Each journal ends where the next begins."""
    for path, follower in pairwise(_files(root)):
        if _round_of(follower) <= before:
            with suppress(OSError):  # open in another program, on Windows: the next call removes it
                file_moves.unlink(path, missing_ok=True)


def _files(root: Path) -> list[Path]:
    """All journals, oldest first."""
    return sorted(path for path in root.iterdir() if NAME.match(path.name)) if root.is_dir() else []


def _round_of(path: Path) -> int:
    return int(path.name.removeprefix("journal-r"))


def _read(path: Path) -> Iterator[tuple[JournalEntry, int]]:
    """(entry, its bytes); stops at the first that is incomplete, damaged, or of another version."""
    for body, size in _parts(path):
        try:
            unpacked = zstandard.ZstdDecompressor().decompress(body, max_output_size=LARGEST)
            entry = msgspec.msgpack.decode(unpacked, type=JournalEntry)
        except (zstandard.ZstdError, *UNREADABLE):
            return
        yield entry, size


def _parts(path: Path) -> Iterator[tuple[bytes, int]]:
    """(compressed entry, its bytes); stops at the first that is incomplete or damaged."""
    with path.open("rb") as file:
        while len(head := file.read(HEAD.size)) == HEAD.size:
            length, expected = HEAD.unpack(head)
            body = file.read(length) if length <= LARGEST else b""
            if len(body) != length or hashlib.sha256(body).digest() != expected:
                return
            yield body, HEAD.size + length


def _ends_torn(path: Path, readable: int) -> bool:
    """Whether the rest of a journal is one entry that a kill left incomplete: its header announces more bytes than there are.

    With a damaged header, the compressed data would end before the file does.
    """
    with path.open("rb") as file:
        file.seek(readable)
        head, body = file.read(HEAD.size), file.read(LARGEST)
    if len(head) < HEAD.size:
        return True
    unpacked = zstandard.ZstdDecompressor().decompressobj()
    with suppress(zstandard.ZstdError):
        unpacked.decompress(body)
    return len(body) < HEAD.unpack(head)[0] <= LARGEST and not unpacked.eof


def _lesson(batch: TrainingGroup) -> JournaledGroup:
    return JournaledGroup(
        prompt=batch.prompt.astype("<i4").tobytes(),
        completions=[tokens.astype("<i4").tobytes() for tokens in batch.completions],
        advantage=_floats(batch.advantage),
        weight=_floats(batch.weight),
        old_logp=None if batch.old_logp is None else _floats(batch.old_logp),
        returns=None if batch.returns is None else _floats(batch.returns),
    )


def _values(batches: Sequence[TrainingGroup]) -> list[bytes]:
    return [_floats(batch.values) for batch in batches if batch.values is not None]  # all of them have some, or none


def _batches(lessons: Sequence[JournaledGroup], values: Sequence[bytes]) -> list[TrainingGroup]:
    return [_batch(*each) for each in zip_longest(lessons, values)]


def _batch(lesson: JournaledGroup, values: bytes | None) -> TrainingGroup:
    return TrainingGroup(
        prompt=np.frombuffer(lesson.prompt, "<i4").astype(np.int32),
        completions=tuple(np.frombuffer(tokens, "<i4").astype(np.int32) for tokens in lesson.completions),
        advantage=_numbers(lesson.advantage),
        weight=_numbers(lesson.weight),
        old_logp=None if lesson.old_logp is None else _numbers(lesson.old_logp),
        returns=None if lesson.returns is None else _numbers(lesson.returns),
        values=None if values is None else _numbers(values),
    )


def _floats(numbers: Floats) -> bytes:
    return numbers.astype("<f4").tobytes()


def _numbers(content: bytes) -> Floats:
    return np.frombuffer(content, "<f4").astype(np.float32)
