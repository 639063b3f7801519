"""From a stranger's bytes to judged groups: hash, form, questions made again, reserved ones refused, rewards computed here."""

import hashlib
import time
from dataclasses import dataclass

from waggle.errors import BadRecord, CharterError, VerifierError, VerifierGone
from waggle.swarm import record
from waggle.swarm.announcement import Announcement
from waggle.swarm.record import Record
from waggle.tasks.charter import Charter
from waggle.tasks.group import JudgedGroup
from waggle.tasks.questions import seed_of, split_of
from waggle.tasks.verifier import Verifier

RECORD_S = 5.0  # for all groups of one record: hundreds of times what honest ones take


@dataclass(frozen=True)
class Judged:
    """What is left of a record: its groups, judged, and how many were refused because their question is reserved."""

    record: Record
    groups: tuple[JudgedGroup, ...]
    reserved: int


def judge(blob: bytes, announced: Announcement, *, origin: bytes, charter: Charter, verifier: Verifier, now: float) -> Judged:
    """Read and judge what `origin` announced; raises BadRecord, or VerifierGone.

    Blocks for as long as judging takes.
    """
    if len(blob) != announced.size or hashlib.sha256(blob).digest() != announced.sha256:
        raise BadRecord("not the payload that was announced")
    found = record.decode(blob, charter, origin=origin, now=now)
    if (found.round, found.epoch, found.model) != (announced.round, announced.epoch, announced.model):
        raise BadRecord("not the round that was announced")
    try:
        groups = _judged(found, charter, verifier)
    except VerifierGone:  # our own trouble, not the sender's
        raise
    except (CharterError, VerifierError) as error:  # this question alone; the round meets a broken verifier by itself
        raise BadRecord("cannot be judged") from error
    return Judged(found, groups, reserved=len(found.groups) - len(groups))


def _judged(found: Record, charter: Charter, verifier: Verifier) -> tuple[JudgedGroup, ...]:
    digest = charter.digest
    keys = [(group.id.dataset, seed_of(digest, found.origin, group.id)) for group in found.groups]
    judged = []
    questions = verifier.questions(keys)
    spent = 0.0
    for group, question in zip(found.groups, questions, strict=True):
        if spent > RECORD_S:
            raise BadRecord("takes too long to judge")
        if split_of(question.dataset, question.text) != "train":
            continue
        # One group at a time, so that the round's own judging never waits for a whole record.
        with verifier.turn:  # waiting for it is nobody's offence
            begun = time.monotonic()
            verdicts = verifier.judge_strangers([(question, completion) for completion in group.completions])
            spent += time.monotonic() - begun
        judged.append(JudgedGroup(group=group, question=question, verdicts=tuple(verdicts), round=found.round, model=found.model))
    return tuple(judged)
