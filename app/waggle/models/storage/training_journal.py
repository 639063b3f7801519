"""The journal: what was learned since the last checkpoint, a few kilobytes a round, so that it can be learned again.

    journal-rNNNNNNNN   follows the checkpoint of that round: length, SHA-256, entry; length, SHA-256, entry ...

A checkpoint every round would wear out a disk; without one, a kill would lose rounds. Learning again from the same training
sets, on the same number of threads of a CPU, gives the same weights bit for bit; CUDA and Metal, which add up in no fixed order,
give close ones. Each entry is flushed; a torn last one is left out.
"""

import hashlib
import os
import re
import shutil
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import zstandard

from waggle.core.errors import UNREADABLE
from waggle.core.paths import flush
from waggle.models.storage.checkpoint import CheckpointState, is_of
from waggle.rl.batch import Floats, StepMetrics, StepParams, TrainingGroup, nothing
from waggle.rl.objective import Clip

NAME = re.compile(r"^journal-r(\d{8})\Z")
HEAD = struct.Struct("<I32s")
LARGEST = 64 << 20  # bytes of one entry: what is longer was not written by us
Learn = Callable[[Sequence[TrainingGroup], StepParams], StepMetrics]


class JournaledGroup(msgspec.Struct, frozen=True, array_like=True):
    """One group as little-endian bytes: int32 tokens, float32 numbers."""

    prompt: bytes
    completions: list[bytes]
    advantage: bytes
    weight: bytes
    old_logp: bytes | None
    returns: bytes | None


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One round: the state after it, and the step that led there. No lessons: nothing was learned."""

    saved: CheckpointState
    lessons: list[JournaledGroup] = []
    learning_rate: float = 0.0
    temperature: float = 1.0
    clip: tuple[float, float] = (0.0, 0.0)
    value_share: float = 0.0
    max_gradient_norm: float = 1.0


def entry_of(saved: CheckpointState, batches: Sequence[TrainingGroup], params: StepParams | None) -> JournalEntry:
    if params is None:
        return JournalEntry(saved=saved)
    return JournalEntry(
        saved=saved,
        lessons=[_lesson(batch) for batch in batches],
        learning_rate=params.learning_rate,
        temperature=params.temperature,
        clip=(params.clip.low, params.clip.high),
        value_share=params.value_share,
        max_gradient_norm=params.max_gradient_norm,
    )


def append(root: Path, after: int, entry: JournalEntry) -> int:
    """Add an entry to the journal of the checkpoint of round `after`, for good; the bytes written. Raises OSError."""
    body = zstandard.ZstdCompressor().compress(msgspec.msgpack.encode(entry))
    line = HEAD.pack(len(body), hashlib.sha256(body).digest()) + body
    # Unbuffered: a buffer that a full disk did not take would be written again, and before the file could be cut.
    with (root / f"journal-r{after:08d}").open("ab", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        try:
            written = 0
            while written < len(line):  # a disk that is nearly full takes a part, and only then refuses
                written += file.write(line[written:])
            os.fsync(file.fileno())
            if not end:
                flush(root)  # the name of a new file is in its folder
        except OSError:  # no torn entry may stand before the next one
            file.truncate(end)
            raise
    return len(line)


def entries(root: Path, after: int, base: str) -> Iterator[JournalEntry]:
    """What was learned after round `after`, one round behind the other; ends where something is missing or damaged."""
    for path in _files(root):
        for entry, _ in _read(path):
            if entry.saved.round == after + 1 and is_of(entry.saved, base):
                after += 1
                yield entry


def learn_again(learn: Learn, entry: JournalEntry, pause_point: Callable[[], None] = nothing) -> None:
    """Take the step of an entry; raises Stopped from the pause point, before anything changed."""
    pause_point()
    if not entry.lessons:
        return
    params = StepParams(
        learning_rate=entry.learning_rate,
        temperature=entry.temperature,
        clip=Clip(*entry.clip),
        value_share=entry.value_share,
        max_gradient_norm=entry.max_gradient_norm,
        pause_point=pause_point,
    )
    learn([_batch(lesson) for lesson in entry.lessons], params)


def mend(root: Path, after: int) -> Path | None:
    """Cut off what nobody here can read, so that new entries can be read behind it. Unless it is only what a kill left half
    written, a copy of all is kept: its place, else None. Raises OSError."""
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
    """Rename every journal that follows a checkpoint of a round above this one: their new places. Raises OSError."""
    lost = [path for path in _files(root) if _round_of(path) > above]
    return [path.replace(path.with_name(f"damaged-{path.name}")) for path in lost]


def newest(root: Path) -> int:
    """The round that the newest journal follows; 0 where there is none."""
    return max((_round_of(path) for path in _files(root)), default=0)


def forget(root: Path, before: int) -> None:
    """Remove the journals that lead to checkpoints which are kept anyway: each reaches to where the next one begins, however
    many checkpoints were saved on the way."""
    for path, follower in pairwise(_files(root)):
        if _round_of(follower) <= before:
            with suppress(OSError):  # somebody holds it open, on Windows: it goes after the next checkpoint
                path.unlink(missing_ok=True)


def _files(root: Path) -> list[Path]:
    """Oldest first."""
    return sorted(path for path in root.iterdir() if NAME.match(path.name)) if root.is_dir() else []


def _round_of(path: Path) -> int:
    return int(path.name.removeprefix("journal-r"))


def _read(path: Path) -> Iterator[tuple[JournalEntry, int]]:
    """Entries and the room each takes; ends at the first that is torn, damaged, or of a version that wrote otherwise."""
    for body, size in _parts(path):
        try:
            unpacked = zstandard.ZstdDecompressor().decompress(body, max_output_size=LARGEST)
            entry = msgspec.msgpack.decode(unpacked, type=JournalEntry)
        except (zstandard.ZstdError, *UNREADABLE):
            return
        yield entry, size


def _parts(path: Path) -> Iterator[tuple[bytes, int]]:
    """Whole entries and the room each takes; ends at the first that is torn or damaged."""
    with path.open("rb") as file:
        while len(head := file.read(HEAD.size)) == HEAD.size:
            length, expected = HEAD.unpack(head)
            body = file.read(length) if length <= LARGEST else b""
            if len(body) != length or hashlib.sha256(body).digest() != expected:
                return
            yield body, HEAD.size + length


def _ends_torn(path: Path, readable: int) -> bool:
    """Whether no more stands behind what can be read than what a kill leaves of one: fewer bytes than its head names.

    Were it the head that is damaged, a body would end before the file does.
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


def _batch(lesson: JournaledGroup) -> TrainingGroup:
    return TrainingGroup(
        prompt=np.frombuffer(lesson.prompt, "<i4").astype(np.int32),
        completions=tuple(np.frombuffer(tokens, "<i4").astype(np.int32) for tokens in lesson.completions),
        advantage=_numbers(lesson.advantage),
        weight=_numbers(lesson.weight),
        old_logp=None if lesson.old_logp is None else _numbers(lesson.old_logp),
        returns=None if lesson.returns is None else _numbers(lesson.returns),
    )


def _floats(numbers: Floats) -> bytes:
    return numbers.astype("<f4").tobytes()


def _numbers(content: bytes) -> Floats:
    return np.frombuffer(content, "<f4").astype(np.float32)
