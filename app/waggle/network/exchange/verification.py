"""From a stranger's bytes to judged groups: hash, form, questions made again, reserved ones refused, rewards computed here."""

import hashlib
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from waggle.core.errors import BadRecord, CharterError, VerifierError, VerifierGone
from waggle.network.messages import rollout_record
from waggle.network.messages.announcement import Announcement
from waggle.network.messages.rollout_record import RolloutRecord
from waggle.tasks.charter import Charter
from waggle.tasks.questions import Question, seed_of, split_of
from waggle.tasks.rollout_group import RIGHT, TAGS, Completion, JudgedGroup, Verdict
from waggle.tasks.sandbox import verifier as verifying
from waggle.tasks.sandbox.verifier import Verifier, batched

AT_ONCE = 16  # questions made in one turn
SEVERAL = Verdict(reward=0.0, reason="several answers")
RECORD_S = 5.0  # of the processor, for all groups of one record: hundreds of times what honest ones take


@dataclass(frozen=True)
class VerifiedRecord:
    """What is left of a record: its groups, judged, and how many were refused because their question is reserved."""

    record: RolloutRecord
    groups: tuple[JudgedGroup, ...]
    reserved: int


class VerifierStopwatch:
    """The seconds that the verifier worked; where it ended over it, those that this took, with another's start.

    Waiting is nobody's offence, neither for its turn nor for a processor that has other things to do.
    """

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def turn(self, verifier: Verifier) -> Iterator[None]:
        """Raises VerifierGone where there is no child and none can be started: how long that takes is our own trouble."""
        with verifier.turn:
            verifier.revive()
            begun, before, starved, most = time.monotonic(), verifier.worked, verifier.starved, math.inf
            try:
                yield
                most = verifier.worked - before
            except VerifierGone:
                most = verifying.STRANGERS_SECONDS if verifier.starved == starved else 0.0
                raise
            finally:
                self.seconds += min(time.monotonic() - begun, most)


def verify_record(
    blob: bytes,
    announced: Announcement,
    *,
    origin: bytes,
    charter: Charter,
    verifier: Verifier,
    now: float,
    watch: VerifierStopwatch | None = None,
) -> VerifiedRecord:
    """Read and judge what `origin` announced; raises BadRecord, or VerifierGone.

    Blocks for as long as judging takes; `watch` tells how much of that was work.
    """
    if len(blob) != announced.size or hashlib.sha256(blob).digest() != announced.sha256:
        raise BadRecord("not the payload that was announced")
    record = rollout_record.decode(blob, charter, origin=origin, now=now)
    if (record.round, record.epoch, record.model) != (announced.round, announced.epoch, announced.model):
        raise BadRecord("not the round that was announced")
    try:
        groups = _judge_groups(record, charter, verifier, watch or VerifierStopwatch())
    except VerifierGone:  # our own trouble, not the sender's
        raise
    except (CharterError, VerifierError) as error:  # this question alone; the round meets a broken verifier by itself
        raise BadRecord("cannot be judged") from error
    return VerifiedRecord(record, groups, reserved=len(record.groups) - len(groups))


def _judge_groups(
    record: RolloutRecord, charter: Charter, verifier: Verifier, watch: VerifierStopwatch
) -> tuple[JudgedGroup, ...]:
    digest = charter.digest
    keys = [(group.id.dataset, seed_of(digest, record.origin, group.id)) for group in record.groups]
    judged, questions = [], list[Question]()
    for some in batched(keys, AT_ONCE):  # so that the round's own judging waits for these only
        with watch.turn(verifier):
            questions += verifier.questions(some)
    making = watch.seconds  # which is the charter's doing
    if not all(question.text for question in questions):
        raise BadRecord("cannot be judged")
    for group, question in zip(record.groups, questions, strict=True):
        if split_of(question.dataset, question.text) != "train":
            continue
        # One group at a time, for the same reason.
        with watch.turn(verifier):
            verdicts = verifier.judge_strangers([(question, completion) for completion in group.completions])
        if watch.seconds - making > RECORD_S:
            raise BadRecord("takes too long to judge")
        counted = tuple(map(strict_verdict, group.completions, verdicts))
        judged.append(JudgedGroup(group=group, question=question, verdicts=counted, round=record.round, model=record.model))
    return tuple(judged)


def strict_verdict(completion: Completion, verdict: Verdict) -> Verdict:
    """The verdict on a peer's completion: it earns nothing where it is not right, or holds several answers.

    Scorers pay a wrong answer in part that holds the right one, as 531 does 53: where nothing in its group did better, it would
    be taught as one that is right. Of several answers one alone was judged, and the others, wrong as they may be, would be taught
    along with it. Our model's own usual errors are not strange to it.
    """
    if max(map(completion.text.count, TAGS)) > 1:
        return SEVERAL
    return verdict if verdict.reward >= RIGHT else msgspec.structs.replace(verdict, reward=0.0)
