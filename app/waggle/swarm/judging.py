"""From a stranger's bytes to judged groups: hash, form, questions made again, reserved ones refused, rewards computed here."""

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
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


class Watch:
    """The seconds that the verifier worked, whatever came of it. Waiting for its turn is nobody's offence."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def turn(self, verifier: Verifier) -> Iterator[None]:
        with verifier.turn:
            begun = time.monotonic()
            try:
                yield
            finally:
                self.seconds += time.monotonic() - begun


def judge(
    blob: bytes,
    announced: Announcement,
    *,
    origin: bytes,
    charter: Charter,
    verifier: Verifier,
    now: float,
    watch: Watch | None = None,
) -> Judged:
    """Read and judge what `origin` announced; raises BadRecord, or VerifierGone.

    Blocks for as long as judging takes; `watch` tells how much of that was work.
    """
    if len(blob) != announced.size or hashlib.sha256(blob).digest() != announced.sha256:
        raise BadRecord("not the payload that was announced")
    found = record.decode(blob, charter, origin=origin, now=now)
    if (found.round, found.epoch, found.model) != (announced.round, announced.epoch, announced.model):
        raise BadRecord("not the round that was announced")
    try:
        groups = _judged(found, charter, verifier, watch or Watch())
    except VerifierGone:  # our own trouble, not the sender's
        raise
    except (CharterError, VerifierError) as error:  # this question alone; the round meets a broken verifier by itself
        raise BadRecord("cannot be judged") from error
    return Judged(found, groups, reserved=len(found.groups) - len(groups))


def _judged(found: Record, charter: Charter, verifier: Verifier, watch: Watch) -> tuple[JudgedGroup, ...]:
    digest = charter.digest
    keys = [(group.id.dataset, seed_of(digest, found.origin, group.id)) for group in found.groups]
    judged = []
    with watch.turn(verifier):
        questions = verifier.questions(keys)
    making = watch.seconds  # which is the charter's doing
    for group, question in zip(found.groups, questions, strict=True):
        if split_of(question.dataset, question.text) != "train":
            continue
        # One group at a time, so that the round's own judging never waits for a whole record.
        with watch.turn(verifier):
            verdicts = verifier.judge_strangers([(question, completion) for completion in group.completions])
        if watch.seconds - making > RECORD_S:
            raise BadRecord("takes too long to judge")
        judged.append(JudgedGroup(group=group, question=question, verdicts=tuple(verdicts), round=found.round, model=found.model))
    return tuple(judged)
