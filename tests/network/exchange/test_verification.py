"""A record is judged as a whole within seconds, or dropped."""

import hashlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from types import SimpleNamespace

import pytest

from network.loopback import answered, question_ids
from waggle.core.errors import BadRecord, VerifierError, VerifierGone
from waggle.network.exchange import verification
from waggle.network.exchange.verification import VerifierStopwatch
from waggle.network.identity.keys import Identity
from waggle.network.messages import rollout_record
from waggle.network.messages.announcement import Announcement
from waggle.network.messages.faults import Fault
from waggle.network.messages.rollout_record import RolloutRecord
from waggle.tasks.charter import Charter
from waggle.tasks.questions import Question, epoch_at
from waggle.tasks.rollout_group import Completion, Verdict
from waggle.tasks.sandbox import verifier as verifying
from waggle.tasks.sandbox.messages import Key
from waggle.tasks.sandbox.verifier import BATCH_SECONDS, Verifier


def announced_record(
    charter: Charter, verifier: Verifier, origin: bytes, now: float, count: int = 3
) -> tuple[bytes, Announcement]:
    groups = tuple(answered(charter, verifier, origin, question_ids(charter, verifier, origin, count)))
    blob = rollout_record.encode(RolloutRecord(origin=origin, round=1, epoch=epoch_at(now), model="m", groups=groups), charter)
    announced = Announcement(
        charter=charter.digest, sha256=hashlib.sha256(blob).digest(), size=len(blob), round=1, epoch=epoch_at(now), specialties=1,
        model="m", expires=1,
    )  # fmt: skip
    return blob, announced


def test_a_record_that_takes_too_long_to_judge_is_dropped(
    charter: Charter, verifier: Verifier, identity: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, origin = time.time(), identity.peer_id
    blob, announced = announced_record(charter, verifier, origin, now)
    judged = verification.verify_record(blob, announced, origin=origin, charter=charter, verifier=verifier, now=now)
    assert len(judged.groups) == 3

    monkeypatch.setattr(verification, "RECORD_S", 0.0)

    with pytest.raises(BadRecord, match=Fault.TOO_SLOW_TO_JUDGE):
        verification.verify_record(blob, announced, origin=origin, charter=charter, verifier=verifier, now=now)


class Queue:
    """The lock of a verifier that others use so much that each turn must wait."""

    def __init__(self, lock: AbstractContextManager[object], wait: Callable[[], None]) -> None:
        self._lock, self._wait, self._inside = lock, wait, 0

    def __enter__(self) -> None:
        if not self._inside:
            self._wait()
        self._inside += 1
        self._lock.__enter__()

    def __exit__(self, *_: object) -> None:
        self._inside -= 1
        self._lock.__exit__(None, None, None)


def test_a_record_that_waits_for_the_rounds_own_judging_is_not_refused_for_it(
    charter: Charter, verifier: Verifier, identity: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, origin, clock = time.time(), identity.peer_id, [0.0]
    blob, announced = announced_record(charter, verifier, origin, now)

    def wait() -> None:
        clock[0] += BATCH_SECONDS

    monkeypatch.setattr(verifier, "_lock", Queue(verifier._lock, wait))
    monkeypatch.setattr(verification, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    watch = VerifierStopwatch()
    judged = verification.verify_record(blob, announced, origin=origin, charter=charter, verifier=verifier, now=now, watch=watch)
    assert len(judged.groups) == 3
    assert clock[0] >= 3 * BATCH_SECONDS
    assert watch.seconds == 0, "of work"


def test_the_rounds_own_judging_waits_for_a_few_questions_of_a_record_and_never_for_all(
    charter: Charter, verifier: Verifier, identity: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, origin, make = time.time(), identity.peer_id, verifier.questions
    blob, announced = announced_record(charter, verifier, origin, now, count=40)
    turns: list[int] = []
    record: list[int] = []

    def questions(keys: Sequence[Key]) -> list[Question]:
        record.append(len(turns))
        assert len(keys) <= verification.BATCH_QUESTIONS
        return make(keys)

    monkeypatch.setattr(verifier, "_lock", Queue(verifier._lock, lambda: turns.append(1)))
    monkeypatch.setattr(verifier, "questions", questions)
    judged = verification.verify_record(blob, announced, origin=origin, charter=charter, verifier=verifier, now=now)
    assert record == [1, 2, 3]
    ids = [each.group.id for each in judged.groups]
    assert [each.question for each in judged.groups] == make(
        [(each.dataset, each.key(charter.digest, origin).seed) for each in ids]
    )


def test_of_a_record_whose_only_group_takes_too_long_nothing_is_kept_and_the_work_is_told(
    charter: Charter, verifier: Verifier, identity: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, origin = time.time(), identity.peer_id
    blob, announced = announced_record(charter, verifier, origin, now, count=1)
    monkeypatch.setattr(verification, "RECORD_S", 0.0)
    watch = VerifierStopwatch()
    with pytest.raises(BadRecord, match=Fault.TOO_SLOW_TO_JUDGE):
        verification.verify_record(blob, announced, origin=origin, charter=charter, verifier=verifier, now=now, watch=watch)
    assert watch.seconds > 0


@pytest.mark.parametrize("trouble", ["questions", "judge_strangers"])
def test_a_verifier_that_cannot_be_started_again_is_not_the_senders_offence(
    charter: Charter, verifier: Verifier, identity: Identity, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    now, origin = time.time(), identity.peer_id
    blob, announced = announced_record(charter, verifier, origin, now)

    def gone(_: object) -> None:
        raise VerifierGone("The judging process cannot be started.")

    monkeypatch.setattr(verifier, trouble, gone)
    with pytest.raises(VerifierGone):
        verification.verify_record(blob, announced, origin=origin, charter=charter, verifier=verifier, now=now)


@pytest.fixture
def own(charter: Charter) -> Iterator[Verifier]:
    """A verifier that this test may end."""
    record = Verifier(charter)
    yield record
    record.close()


def kill(verifier: Verifier) -> None:
    os.kill(verifier.pid, signal.SIGKILL)
    os.waitid(os.P_PID, verifier.pid, os.WEXITED | os.WNOWAIT)


def test_nobody_pays_for_the_start_of_a_child_that_was_dead_before(own: Verifier, monkeypatch: pytest.MonkeyPatch) -> None:
    before, start, clock, watch = own.pid, own._open, [0.0], VerifierStopwatch()

    def take_long() -> None:
        clock[0] += verifying.START_SECONDS
        start()

    monkeypatch.setattr(verification, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(own, "_open", take_long)
    kill(own)
    with watch.turn(own):
        assert own.pid != before
    assert clock[0] == verifying.START_SECONDS
    assert watch.seconds == 0


def test_whoever_ends_the_child_pays_no_more_than_a_text_may_take_where_it_cannot_be_started(
    own: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, watch = [0.0], VerifierStopwatch()

    def start() -> None:
        clock[0] += verifying.START_SECONDS
        raise VerifierError("The judging process does not start.")

    monkeypatch.setattr(verification, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(own, "_open", start)
    with pytest.raises(VerifierGone), watch.turn(own):
        own.judge_strangers(iter(lambda: kill(own), None))  # dead as soon as it is asked
    assert watch.seconds == verifying.STRANGERS_SECONDS


@pytest.mark.parametrize("starts", [True, False])
def test_nobody_pays_for_a_child_that_had_no_processor(own: Verifier, monkeypatch: pytest.MonkeyPatch, starts: bool) -> None:
    def fail() -> None:
        raise VerifierError("The judging process does not start.")

    (question,), watch = own.questions([("bf", 3)]), VerifierStopwatch()
    if not starts:
        monkeypatch.setattr(own, "_open", fail)
    monkeypatch.setattr(verifying, "BATCH_SECONDS", 0.5)
    os.kill(own.pid, signal.SIGSTOP)
    with pytest.raises(VerifierGone), watch.turn(own):
        own.judge_strangers([(question, Completion(text="<answer>1</answer>", ended=True))])
    assert watch.seconds == 0


def test_a_record_is_not_refused_because_the_computer_was_busy_meanwhile(
    charter: Charter, own: Verifier, identity: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, origin, judge = time.time(), identity.peer_id, own.judge_strangers
    blob, announced = announced_record(charter, own, origin, now)
    monkeypatch.setattr(verification, "RECORD_S", 1.0)
    stops: list[threading.Timer] = []

    def judge_late(items: Iterable[tuple[Question, Completion]]) -> list[Verdict]:
        if not stops:
            os.kill(own.pid, signal.SIGSTOP)
            stops.append(threading.Timer(1.5, os.kill, (own.pid, signal.SIGCONT)))
            stops[0].start()
        return judge(items)

    monkeypatch.setattr(own, "judge_strangers", judge_late)
    watch = VerifierStopwatch()
    judged = verification.verify_record(blob, announced, origin=origin, charter=charter, verifier=own, now=now, watch=watch)
    stops[0].join()
    assert len(judged.groups) == 3
    assert 0 < watch.seconds < 1.0
