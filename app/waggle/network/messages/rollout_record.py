"""The record: one blob with the groups that a node shares of one round, and the strict decoding of blobs from strangers.

Array-encoded msgpack inside zstd. Rewards, log-probs, questions and answers do not travel: the reader makes them.
"""

from collections.abc import Sequence
from typing import Annotated

import msgspec
import zstandard

from waggle.core.errors import UNREADABLE, BadRecord
from waggle.core.text.legible_name import legible
from waggle.core.text.unsound_text import BROKEN, UNSOUND
from waggle.network.messages.faults import Fault
from waggle.tasks.charter import PROTOCOL, Charter
from waggle.tasks.questions import EPOCH_SECONDS, QuestionId, epoch_at
from waggle.tasks.rollout_group import Author, Completion, Group

MAX_GROUPS = 128  # in one record: about one second of a very small model
MAX_BLOB = 2 * 1024 * 1024  # compressed; a unary libp2p call carries 4 MiB
MAX_RAW = 8 * 1024 * 1024  # decompressed, under any charter
MIN_BLOB = 72  # bytes: the hash of the charter and the origin alone cannot be compressed to less
MAX_WINDOW = MAX_RAW  # of the decompressor, so that a blob cannot choose how much memory decoding takes
MAX_MODEL, MODEL_BYTES = 64, 96  # characters, and bytes: an announcement has no room for more
ZSTD_LEVEL = 3
UTF8_BYTES = 4  # of one character, at most
FRAMING = 64  # bytes of msgpack around a completion, a group or the head of a record, at most

Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 40)]


class _WireCompletion(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    text: str
    ended: bool
    by: Author


class _WireGroup(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    specialty: Count
    level: Count
    number: Count  # of the origin's question in the epoch
    completions: Annotated[tuple[_WireCompletion, ...], msgspec.Meta(max_length=16)]


class _WireRecord(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    v: Count
    charter: Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
    origin: Annotated[bytes, msgspec.Meta(max_length=64)]
    round: Count
    epoch: Count
    model: Annotated[str, msgspec.Meta(max_length=MAX_MODEL)]
    groups: Annotated[tuple[_WireGroup, ...], msgspec.Meta(min_length=1, max_length=MAX_GROUPS)]


class RolloutRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The groups that one node shared of one round."""

    origin: bytes
    round: int
    epoch: int
    model: str
    groups: tuple[Group, ...]


_decoder = msgspec.msgpack.Decoder(_WireRecord)


def encode(record: RolloutRecord, charter: Charter) -> bytes:
    """The blob of a record. The last groups are left out until it fits; raises ValueError for groups of another node or epoch."""
    if any(group.origin != record.origin or group.id.epoch != record.epoch for group in record.groups):
        raise ValueError("a record holds one node's groups of one epoch")
    groups = [_wire_group(group, charter) for group in record.groups[:MAX_GROUPS]]
    while True:
        wire = _WireRecord(
            PROTOCOL, charter.digest, record.origin, record.round, record.epoch, model_name(record.model), tuple(groups)
        )
        raw = msgspec.msgpack.encode(wire)
        blob = zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(raw)
        if len(groups) <= 1 or (len(raw) <= MAX_RAW and len(blob) <= MAX_BLOB):
            return blob
        groups = groups[: len(groups) // 2]


def merge(earlier: RolloutRecord, later: RolloutRecord) -> RolloutRecord:
    """Both records as one of the later round. Groups of another epoch cannot travel with it and are left out."""
    groups = {group.id.number: group for group in (*earlier.groups, *later.groups) if group.id.epoch == later.epoch}
    return msgspec.structs.replace(later, groups=tuple(groups.values())[-MAX_GROUPS:])


def decode(blob: bytes, charter: Charter, *, origin: bytes, now: float) -> RolloutRecord:
    """Decode a blob that `origin` announced, at unix time `now`; raises BadRecord only."""
    try:
        wire = _decoder.decode(decompress(blob, most_raw(charter)))
    except UNREADABLE as error:  # not the agreed form
        raise BadRecord(Fault.MALFORMED_RECORD) from error
    if wire.v != PROTOCOL:
        raise BadRecord(Fault.OTHER_PROTOCOL)
    if wire.charter != charter.digest:
        raise BadRecord(Fault.OTHER_CHARTER)
    if wire.origin != origin:
        raise BadRecord(Fault.OTHER_ORIGIN)
    if not is_model_name(wire.model):
        raise BadRecord(Fault.INVALID_MODEL_NAME)
    check_epoch(wire.epoch, charter, now)
    groups = tuple(_read_group(group, wire, charter) for group in wire.groups)
    if len({group.id.number for group in groups}) != len(groups):
        raise BadRecord(Fault.QUESTION_TWICE)
    return RolloutRecord(origin=origin, round=wire.round, epoch=wire.epoch, model=model_name(wire.model), groups=groups)


def most_raw(charter: Charter) -> int:
    """The most bytes that a record under this charter has when it is unpacked: 128 full groups of the longest completions."""
    completion = charter.completion_characters * UTF8_BYTES + FRAMING
    return min(MAX_RAW, (MAX_GROUPS * (charter.group_size_max * completion + FRAMING)) + 4 * FRAMING + MODEL_BYTES)


def written_by_hand(blob: bytes) -> bool:
    """Whether a person wrote a completion in a blob of this node."""
    return any(each.by == "human" for group in _decoder.decode(decompress(blob, MAX_RAW)).groups for each in group.completions)


def shareable(group: Group, charter: Charter) -> Group | None:
    """The group as it may travel; None if it breaks a rule. A completion cut inside a character loses that character."""
    completions = tuple(
        completion if completion.ended else msgspec.structs.replace(completion, text=completion.text.rstrip(BROKEN))
        for completion in group.completions
    )
    if not charter.group_size_min <= len(completions) <= charter.group_size_max:
        return None
    if not all(is_sound(completion.text, charter) for completion in completions):
        return None
    return msgspec.structs.replace(group, completions=completions)


def check_epoch(epoch: int, charter: Charter, now: float) -> None:
    """Raise BadRecord for an epoch outside the charter's age window; one epoch of clock skew is allowed."""
    current = epoch_at(now)
    if epoch > current + 1:
        raise BadRecord(Fault.FROM_THE_FUTURE)
    if epoch < oldest_epoch(charter, now):
        raise BadRecord(Fault.TOO_OLD)


def oldest_epoch(charter: Charter, now: float) -> int:
    """The oldest epoch that is accepted at unix time `now`."""
    return epoch_at(now) - -(-charter.age_window_s // EPOCH_SECONDS)


def specialties_of(groups: Sequence[Group], charter: Charter) -> int:
    """The bitmask of the specialties that occur, bit 0 the charter's first."""
    mask = 0
    for dataset in {group.id.dataset for group in groups}:
        mask |= 1 << charter.position(dataset)
    return mask


def model_name(name: str) -> str:
    """A model's name as it is sent and shown: legible, at most 64 characters and 96 bytes, cut between characters."""
    return legible(name)[:MAX_MODEL].encode()[:MODEL_BYTES].decode(errors="ignore").rstrip()


def is_model_name(name: str) -> bool:
    """Whether a model's name is accepted in a message. Earlier versions send more letters than its `model_name` has."""
    return name.isprintable() and BROKEN not in name and len(name) <= MAX_MODEL and len(name.encode()) <= MODEL_BYTES


def is_sound(text: str, charter: Charter) -> bool:
    """Whether a completion is short enough, and free of lost bytes, lone surrogates, and characters that hide or reorder text."""
    return len(text) <= charter.completion_characters and not UNSOUND.search(text)


def decompress(blob: bytes, most: int) -> bytes:
    """The content of a zstd frame, at most `most` bytes; raises BadRecord."""
    if len(blob) > MAX_BLOB:
        raise BadRecord(Fault.TOO_LARGE)
    try:
        size = zstandard.frame_content_size(blob)
        if not 0 < size <= most:  # -1: a frame that does not say its size
            raise BadRecord(Fault.TOO_LARGE_UNPACKED)
        decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
        return decompressor.decompress(blob, max_output_size=size, allow_extra_data=False)
    except zstandard.ZstdError as error:  # the sender's fault
        raise BadRecord(Fault.MALFORMED_COMPRESSION) from error


def _read_group(wire: _WireGroup, record: _WireRecord, charter: Charter) -> Group:
    if wire.specialty >= len(charter.specialties):
        raise BadRecord(Fault.UNKNOWN_SPECIALTY)
    specialty = charter.specialties[wire.specialty]
    if wire.level >= len(specialty.levels):
        raise BadRecord(Fault.UNKNOWN_LEVEL)
    if wire.number >= charter.questions_per_epoch:
        raise BadRecord(Fault.QUESTION_BEYOND_LIMIT)
    if not charter.group_size_min <= len(wire.completions) <= charter.group_size_max:
        raise BadRecord(Fault.WRONG_GROUP_SIZE)
    for completion in wire.completions:
        if len(completion.text) > charter.completion_characters:
            raise BadRecord(Fault.COMPLETION_TOO_LONG)
        if not is_sound(completion.text, charter):
            raise BadRecord(Fault.BROKEN_TEXT)
    return Group(
        origin=record.origin,
        id=QuestionId(specialty.dataset, record.epoch, wire.number, wire.level),
        completions=tuple(Completion(text=each.text, ended=each.ended, by=each.by) for each in wire.completions),
    )


def _wire_group(group: Group, charter: Charter) -> _WireGroup:
    completions = tuple(_WireCompletion(each.text, each.ended, each.by) for each in group.completions)
    return _WireGroup(charter.position(group.id.dataset), group.id.level, group.id.number, completions)
