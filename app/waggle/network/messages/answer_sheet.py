"""The answer sheet: the answers of one node's model to the exam of an epoch, signed by that node. It never enters a pool.

It claims no reward: each reader scores it. Its other claims (after how many rounds it was written, whether its writer learns from
peers) cannot be checked.
"""

from collections.abc import Sequence
from typing import Annotated

import msgspec
import zstandard

from waggle.core.errors import UNREADABLE, BadRecord
from waggle.core.text.unsound_text import BROKEN
from waggle.network.identity.keys import SIGNATURE_BYTES, Identity, verify
from waggle.network.identity.membership import CERTIFICATE_BYTES
from waggle.network.messages import rollout_record
from waggle.network.messages.announcement import Digest, PeerId
from waggle.network.messages.faults import Fault
from waggle.tasks.charter import PROTOCOL, Charter
from waggle.tasks.questions import epoch_at
from waggle.tasks.rollout_group import Completion
from waggle.tasks.sandbox.exam import QUESTIONS, Exam

DOMAIN = b"waggle/sheet/1\0"
MAX_BYTES = 64 * 1024  # with the signature
MAX_RAW = 512 * 1024


class _WireAnswer(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    text: str
    ended: bool


class _WireSheet(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    v: Annotated[int, msgspec.Meta(ge=PROTOCOL, le=PROTOCOL)]
    charter: Digest
    origin: PeerId
    epoch: rollout_record.Count
    exam: Digest
    round: rollout_record.Count
    learned: rollout_record.Count
    model: Annotated[str, msgspec.Meta(max_length=rollout_record.MAX_MODEL)]
    answers: Annotated[tuple[_WireAnswer, ...], msgspec.Meta(min_length=1, max_length=QUESTIONS)]
    certificate: Annotated[bytes, msgspec.Meta(max_length=CERTIFICATE_BYTES)]


class AnswerSheet(msgspec.Struct, frozen=True, kw_only=True):
    """One answer to each question of the exam, in its order. `learned` counts the external groups it was trained on."""

    origin: bytes
    epoch: int
    exam: bytes  # its digest
    round: int
    learned: int
    model: str
    answers: tuple[Completion, ...]
    certificate: bytes = b""  # of a private swarm


_decoder = msgspec.msgpack.Decoder(_WireSheet)


def signed(sheet: AnswerSheet, charter: Charter, identity: Identity) -> bytes:
    """The sheet and its signature; b"" if that is too large. An answer that breaks a rule is sent as an empty one."""
    wire = _WireSheet(
        PROTOCOL, charter.digest, identity.peer_id, sheet.epoch, sheet.exam, sheet.round, sheet.learned,
        rollout_record.model_name(sheet.model), tuple(_travelling(each, charter) for each in sheet.answers), sheet.certificate,
    )  # fmt: skip
    raw = msgspec.msgpack.encode(wire)
    body = zstandard.ZstdCompressor(level=rollout_record.ZSTD_LEVEL).compress(raw)
    if len(raw) > MAX_RAW or len(body) + SIGNATURE_BYTES > MAX_BYTES:
        return b""
    return body + identity.sign(DOMAIN, body)


def read(blob: bytes, charter: Charter, *, origin: bytes) -> AnswerSheet:
    """Read a sheet of `origin`, of any epoch; raises BadRecord only."""
    if not SIGNATURE_BYTES < len(blob) <= MAX_BYTES:
        raise BadRecord(Fault.WRONG_SHEET_SIZE)
    body = blob[:-SIGNATURE_BYTES]
    if not verify(origin, DOMAIN, body, blob[-SIGNATURE_BYTES:]):
        raise BadRecord(Fault.FORGED_SHEET)
    try:
        wire = _decoder.decode(rollout_record.decompress(body, MAX_RAW))
    except UNREADABLE as error:  # not the agreed form
        raise BadRecord(Fault.MALFORMED_SHEET) from error
    if wire.charter != charter.digest:
        raise BadRecord(Fault.OTHER_CHARTER)
    if wire.origin != origin:
        raise BadRecord(Fault.OTHER_ORIGIN)
    if not rollout_record.is_model_name(wire.model):
        raise BadRecord(Fault.INVALID_MODEL_NAME)
    return AnswerSheet(
        origin=origin, epoch=wire.epoch, exam=wire.exam, round=wire.round, learned=wire.learned,
        model=rollout_record.model_name(wire.model), answers=_read_answers(wire.answers, charter), certificate=wire.certificate,
    )  # fmt: skip


def is_current(epoch: int, now: float) -> bool:
    """Whether a sheet of this epoch is scored at unix time `now`. An old one is no offence: answering may take long."""
    return abs(epoch - epoch_at(now)) <= 1


def require_exam(sheet: AnswerSheet, exam: Exam) -> None:
    """Raise BadRecord if these are answers to other questions, or too many or too few."""
    if sheet.exam != exam.digest or len(sheet.answers) != len(exam.questions):
        raise BadRecord(Fault.OTHER_QUESTIONS)


def _read_answers(answers: Sequence[_WireAnswer], charter: Charter) -> tuple[Completion, ...]:
    for each in answers:
        if not rollout_record.is_sound(each.text, charter):
            raise BadRecord(Fault.BROKEN_TEXT)
    return tuple(Completion(text=each.text, ended=each.ended) for each in answers)


def _travelling(answer: Completion, charter: Charter) -> _WireAnswer:
    """The answer as it may travel. If it was cut inside a character, the rest of that character is dropped."""
    text = answer.text if answer.ended else answer.text.rstrip(BROKEN)
    return _WireAnswer(text, answer.ended) if rollout_record.is_sound(text, charter) else _WireAnswer("", False)
