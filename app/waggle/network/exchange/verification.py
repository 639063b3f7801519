"""From the bytes of a stranger to judged groups: check hash and form, make the questions again, judge every completion here."""

import hashlib
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from waggle.core.errors import BadRecord, CharterError, VerifierError, VerifierGone
from waggle.core.message import Message
from waggle.network.messages import rollout_record
from waggle.network.messages.announcement import Announcement
from waggle.network.messages.faults import Fault
from waggle.network.messages.rollout_record import RolloutRecord
from waggle.tasks.charter import Charter
from waggle.tasks.questions import Question, split_of
from waggle.tasks.rollout_group import RIGHT, TAGS, Completion, JudgedGroup, Verdict
from waggle.tasks.sandbox import verifier as verifying
from waggle.tasks.sandbox.verifier import Verifier, batched

BATCH_QUESTIONS = 16  # made in one turn of the verifier
SEVERAL_ANSWERS = Verdict(reward=0.0, reason=Message("several answers"))
RECORD_S = 5.0  # CPU seconds for all groups of one record: hundreds of times what honest ones take


@dataclass(frozen=True)
class VerifiedRecord:
    """The judged groups of a record, and how many groups were refused because their question is reserved."""

    record: RolloutRecord
    groups: tuple[JudgedGroup, ...]
    reserved: int


class VerifierStopwatch:
    """CPU seconds of the verifier. If a record ended the verifier, the time that this and the restart took.

    Waiting is not counted, neither for a turn nor for a busy processor: no peer is to blame for it.
    """

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def turn(self, verifier: Verifier) -> Iterator[None]:
        """Hold the verifier for one turn; raises VerifierGone if no process can be started, which is our own trouble."""
        with verifier.turn:
            verifier.revive()
            began, before, starved, most = time.monotonic(), verifier.worked, verifier.starved, math.inf
            try:
                yield
                most = verifier.worked - before
            except VerifierGone:
                most = verifying.STRANGERS_SECONDS if verifier.starved == starved else 0.0
                raise
            finally:
                self.seconds += min(time.monotonic() - began, most)


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

    Blocks while it judges; `watch` counts the verifier's share of that.
    """
    if len(blob) != announced.size or hashlib.sha256(blob).digest() != announced.sha256:
        raise BadRecord(Fault.OTHER_PAYLOAD)
    record = rollout_record.decode(blob, charter, origin=origin, now=now)
    if (record.round, record.epoch, record.model) != (announced.round, announced.epoch, announced.model):
        raise BadRecord(Fault.OTHER_ROUND)
    try:
        groups = _judge_groups(record, charter, verifier, watch or VerifierStopwatch())
    except VerifierGone:  # our own trouble, not the sender's
        raise
    except (CharterError, VerifierError) as error:  # of this question only; the round notices a broken verifier by itself
        raise BadRecord(Fault.CANNOT_BE_JUDGED) from error
    return VerifiedRecord(record, groups, reserved=len(record.groups) - len(groups))


def _judge_groups(
    record: RolloutRecord, charter: Charter, verifier: Verifier, watch: VerifierStopwatch
) -> tuple[JudgedGroup, ...]:
    digest = charter.digest
    keys = [group.id.key(digest, record.origin) for group in record.groups]
    judged_groups, questions = [], list[Question]()
    for batch in batched(keys, BATCH_QUESTIONS):  # in batches, so that the round's own judging waits for one at most
        with watch.turn(verifier):
            questions += verifier.questions(batch)
    making = watch.seconds  # the time of making questions is the charter's doing, not the sender's
    if not all(question.text for question in questions):
        raise BadRecord(Fault.CANNOT_BE_JUDGED)
    for group, question in zip(record.groups, questions, strict=True):
        if split_of(question.dataset, question.text) != "train":
            continue
        with watch.turn(verifier):  # one group in a turn, for the same reason
            verdicts = verifier.judge_strangers([(question, completion) for completion in group.completions])
        if watch.seconds - making > RECORD_S:
            raise BadRecord(Fault.TOO_SLOW_TO_JUDGE)
        strict = tuple(map(strict_verdict, group.completions, verdicts))
        judged_groups.append(JudgedGroup(group=group, question=question, verdicts=strict, round=record.round, model=record.model))
    return tuple(judged_groups)


def strict_verdict(completion: Completion, verdict: Verdict) -> Verdict:
    """The verdict on a peer's completion: no reward unless it is right, and none for several answers.

    Scorers pay partly for a wrong answer that contains the right one (531 for 53). If no completion of its group did better, it
    would be taught as if it were right. Of several answers only one was judged, but all would be taught. For local completions
    this does not matter: the policy's usual errors are not new to it.
    """
    if max(map(completion.text.count, TAGS)) > 1:
        return SEVERAL_ANSWERS
    return verdict if verdict.reward >= RIGHT else msgspec.structs.replace(verdict, reward=0.0)
