"""An answer sheet is read as it was written, or refused with a reason."""

from collections.abc import Callable

import msgspec
import pytest
import zstandard

from network.loopback import fresh_identity
from waggle.core.errors import BadRecord
from waggle.core.text.unsound_text import BROKEN
from waggle.network.identity.keys import Identity
from waggle.network.messages import answer_sheet, rollout_record
from waggle.network.messages.answer_sheet import AnswerSheet
from waggle.network.messages.faults import Fault
from waggle.tasks.charter import PROTOCOL, Charter
from waggle.tasks.questions import EPOCH_SECONDS, Question
from waggle.tasks.rollout_group import Completion
from waggle.tasks.sandbox.exam import Exam

EPOCH = 3000
NOW = EPOCH * EPOCH_SECONDS + 5.0
EXAM = Exam(epoch=EPOCH, questions=tuple(Question(dataset="bf", seed=i, text=f"{i}?") for i in range(3)))
ANSWERS = tuple(Completion(text=text, ended=bool(text)) for text in ("<answer>1</answer>", "é", ""))


def sheet_of(identity: Identity, **changes: object) -> AnswerSheet:
    fields = {"epoch": EPOCH, "exam": EXAM.digest, "round": 7, "learned": 9, "model": "starter", "answers": ANSWERS}
    return AnswerSheet(origin=identity.peer_id, **{**fields, **changes})


def packed(identity: Identity, charter: Charter, /, **changes: object) -> bytes:
    """A sheet made by hand from its fields in their order, with a valid signature."""
    fields = {
        "v": PROTOCOL, "charter": charter.digest, "origin": identity.peer_id, "epoch": EPOCH, "exam": EXAM.digest, "round": 7,
        "learned": 9, "model": "starter", "answers": [["a", True]], "certificate": b"",
    }  # fmt: skip
    body = zstandard.ZstdCompressor().compress(msgspec.msgpack.encode(list({**fields, **changes}.values())))
    return body + identity.sign(answer_sheet.DOMAIN, body)


def test_a_sheet_is_read_as_it_was_written(identity: Identity, charter: Charter) -> None:
    blob = answer_sheet.signed(sheet_of(identity), charter, identity)
    assert len(blob) < 400
    sheet = answer_sheet.read(blob, charter, origin=identity.peer_id)
    assert sheet == sheet_of(identity)
    answer_sheet.require_exam(sheet, EXAM)


def test_the_invisible_letters_of_a_model_name_are_not_read(identity: Identity, charter: Charter) -> None:
    sheet = answer_sheet.read(packed(identity, charter, model="sta\u3164rter \u2800"), charter, origin=identity.peer_id)
    assert sheet.model == "starter"


def test_what_may_not_travel_counts_as_no_answer(identity: Identity, charter: Charter) -> None:
    answers = (
        Completion(text="x" * 401, ended=True), Completion(text="\u202eevil", ended=True),
        Completion(text=f"cut{BROKEN}", ended=False),
    )  # fmt: skip
    blob = answer_sheet.signed(sheet_of(identity, answers=answers), charter, identity)
    sheet = answer_sheet.read(blob, charter, origin=identity.peer_id)
    assert [(answer.text, answer.ended) for answer in sheet.answers] == [("", False), ("", False), ("cut", False)]


def test_the_sheet_of_a_whole_exam_stays_small_and_one_too_large_is_not_published(identity: Identity, charter: Charter) -> None:
    wordy = msgspec.structs.replace(charter, completion_characters=20_000)
    noise = "".join(chr(0x4E00 + (i * 7919) % 20_000) for i in range(20_000))
    large = sheet_of(identity, answers=tuple(Completion(text=noise[i:] + noise[:i], ended=True) for i in range(16)))
    assert answer_sheet.signed(large, wordy, identity) == b""


LIES: dict[str, tuple[Callable[[Identity, Charter], bytes], Fault]] = {
    "a reward claimed beside each answer": (
        lambda me, charter: packed(me, charter, answers=[["a", True, 1.0]]), Fault.MALFORMED_SHEET,
    ),
    "a score claimed behind all": (lambda me, charter: packed(me, charter, score=16), Fault.MALFORMED_SHEET),
    "another swarm's": (lambda me, charter: packed(me, charter, charter=bytes(32)), Fault.OTHER_CHARTER),
    "another's name inside": (lambda me, charter: packed(me, charter, origin=bytes(38)), Fault.OTHER_ORIGIN),
    "more answers than any exam has": (
        lambda me, charter: packed(me, charter, answers=[["a", True]] * 17), Fault.MALFORMED_SHEET,
    ),
    "an answer longer than the charter allows": (
        lambda me, charter: packed(me, charter, answers=[["a" * 401, True]]), Fault.BROKEN_TEXT,
    ),
    "a name that is no name": (lambda me, charter: packed(me, charter, model="a\nb"), Fault.INVALID_MODEL_NAME),
    "a forged signature": (lambda me, charter: packed(me, charter)[:-1] + b"x", Fault.FORGED_SHEET),
    "nothing": (lambda me, charter: b"", Fault.WRONG_SHEET_SIZE),
    "more than is read": (lambda me, charter: bytes(answer_sheet.MAX_BYTES + 1), Fault.WRONG_SHEET_SIZE),
    "a bomb": (
        lambda me, charter: (body := zstandard.ZstdCompressor().compress(bytes(8_000_000))) + me.sign(answer_sheet.DOMAIN, body),
        Fault.TOO_LARGE_UNPACKED,
    ),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_refused(lie: str, identity: Identity, charter: Charter) -> None:
    tell, reason = LIES[lie]
    with pytest.raises(BadRecord, match=reason):
        answer_sheet.read(tell(identity, charter), charter, origin=identity.peer_id)


def test_answers_say_something_of_their_own_epoch_and_the_ones_beside_it() -> None:
    assert [answer_sheet.is_current(EPOCH + apart, NOW) for apart in (-2, -1, 0, 1, 2)] == [False, True, True, True, False]


def test_answers_to_other_questions_are_refused(identity: Identity) -> None:
    for lie in (
        sheet_of(identity, exam=bytes(32)),
        sheet_of(identity, answers=ANSWERS[:2]),
        sheet_of(identity, answers=ANSWERS * 2),
    ):
        with pytest.raises(BadRecord, match=Fault.OTHER_QUESTIONS):
            answer_sheet.require_exam(lie, EXAM)


def test_nobody_presents_anothers_sheet(tmp_path, identity: Identity, charter: Charter) -> None:
    blob = answer_sheet.signed(sheet_of(identity), charter, identity)
    with pytest.raises(BadRecord, match=Fault.FORGED_SHEET):
        answer_sheet.read(blob, charter, origin=fresh_identity(tmp_path, "thief").peer_id)


def test_a_sheet_is_no_record_of_groups(identity: Identity, charter: Charter) -> None:
    blob = answer_sheet.signed(sheet_of(identity), charter, identity)
    for bytes_ in (blob, blob[: -len(identity.sign(b"", b""))]):
        with pytest.raises(BadRecord):
            rollout_record.decode(bytes_, charter, origin=identity.peer_id, now=NOW)
