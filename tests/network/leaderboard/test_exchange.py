"""Running nodes publish answers to the exam and score those of others; a node that does not take part publishes nothing."""

import asyncio
import hashlib
import os
import time
from pathlib import Path

import msgspec
import pytest

from network.loopback import Live, Start, answered, be_of_use, fresh_identity, options, question_ids, share
from network.messages.test_answer_sheet import packed
from waggle.core.errors import VerifierError
from waggle.core.peer_id import text_of
from waggle.network.exchange.publisher import PublishedRecord
from waggle.network.identity.keys import Identity
from waggle.network.leaderboard.exchange import count_right
from waggle.network.limits.rate_limits import TOGETHER, JointRateLimit
from waggle.network.messages import announcement as announcements
from waggle.network.messages import answer_sheet, handshake
from waggle.network.messages.announcement import Announcement
from waggle.network.messages.answer_sheet import AnswerSheet
from waggle.network.messages.comparison import Comparison, Entrant
from waggle.network.messages.events import GroupsArrived, LeaderboardChanged, RecordRejected, TrafficMeasured
from waggle.network.messages.faults import Fault
from waggle.network.messages.rollout_record import RolloutRecord
from waggle.network.node import SwarmNode
from waggle.network.transport.hivemind.network import open_network
from waggle.network.transport.interface import Services
from waggle.tasks.charter import Charter
from waggle.tasks.questions import EPOCH_SECONDS, epoch_at
from waggle.tasks.rollout_group import RIGHT, Completion, Group
from waggle.tasks.sandbox.exam import Exam, exam_of
from waggle.tasks.sandbox.verifier import Verifier


@pytest.fixture(scope="module")
def exam(charter: Charter, verifier: Verifier) -> Exam:
    return exam_of(verifier, charter, epoch_at(time.time()))


def truths(verifier: Verifier, exam: Exam, right: int) -> list[Completion]:
    """Answers of which the first `right` are right. The scorer decides: a dataset may name an answer that its scorer rejects."""
    answers = verifier.answers([question.key for question in exam.questions])
    written = [Completion(text=f"<answer>{answer}</answer>", ended=True) for answer in answers]
    verdicts = verifier.judge(zip(exam.questions, written, strict=True))
    good = [place for place, verdict in enumerate(verdicts) if verdict.reward >= RIGHT][:right]
    wrong = Completion(text="<answer>no idea</answer>", ended=True)
    return [each if place in good else wrong for place, each in enumerate(written)]


@pytest.fixture
def start_at_work(start: Start, charter: Charter, verifier: Verifier) -> Start:
    """Start nodes that share a group, so that their announcements name their answer sheets too."""

    async def start_one(name: str, **changes: object) -> Live:
        live = await start(name, **changes)
        share(live.node, work(charter, verifier, live.identity))
        return live

    return start_one


def work(charter: Charter, verifier: Verifier, who: Identity) -> list[Group]:
    return answered(charter, verifier, who.peer_id, question_ids(charter, verifier, who.peer_id, 1))


def published(node: SwarmNode, verifier: Verifier, exam: Exam, right: int, *, learned: int = 3) -> int:
    return node.leaderboard.publish(exam.epoch, 40, learned, "starter", truths(verifier, exam, right), right)


def announced(live: Live) -> Announcement:
    return announcements.parse(live.node._publisher.announced)


def of(news: Comparison, who: Identity) -> Entrant | None:
    return next((entrant for entrant in news.entrants if entrant.id == text_of(who.peer_id)), None)


async def test_two_nodes_mark_each_others_answers_and_none_of_them_comes_near_a_pool(
    start_at_work: Start, seed_address: str, verifier: Verifier, exam: Exam
) -> None:
    node = await start_at_work("one", seeds=(seed_address,), leaderboard=True)
    other = await start_at_work("other", seeds=(seed_address,), leaderboard=True)
    silent = await start_at_work("silent", seeds=(seed_address,))

    assert published(silent.node, verifier, exam, 16) == 0, "it did not choose to take part"
    size = published(node.node, verifier, exam, 11)
    assert published(other.node, verifier, exam, 5, learned=0) > 0

    for reader, writer, right, together in ((node, other, 5, False), (other, node, 11, True)):
        news = await reader.ear.hear(
            LeaderboardChanged, lambda news, writer=writer: of(news.comparison, writer.identity) is not None
        )
        result = of(news.comparison, writer.identity)
        assert (result.right, result.total, result.round, result.together) == (right, len(exam.questions), 40, together)
    await other.ear.hear(TrafficMeasured, lambda news: news.down >= size / 5)
    assert "sheet" in [message.kind for message in node.node.outbox.newest() if message.to == other.identity.peer_id]
    both = other.ear.all(LeaderboardChanged)[-1].comparison
    assert [(curve.model, curve.together) for curve in both.curves] == [("starter", True), ("starter", False)]
    assert announced(silent).sheet == b""
    assert silent.ear.all(LeaderboardChanged) == []
    assert of(both, silent.identity) is of(node.ear.all(LeaderboardChanged)[-1].comparison, silent.identity) is None
    requests = {question.text for question in exam.questions}
    for each in (node, other, silent):
        assert requests.isdisjoint(judged.question.text for judged in each.node.waiting())
        assert each.ear.all(RecordRejected) == []


async def test_through_a_gateway_sheets_are_marked_both_ways(
    start_at_work: Start, seed_address: str, charter: Charter, verifier: Verifier, exam: Exam, tmp_path: Path
) -> None:
    lender = await start_at_work("lender", seeds=(seed_address,), web_port=0, gateway=True, leaderboard=True)
    full = await start_at_work("full", seeds=(seed_address,), leaderboard=True)
    ways = {"gateways": (f"ws://127.0.0.1:{lender.node.web.port}/gateway",), "light": True, "leaderboard": True}
    node, other = await start_at_work("one", **ways), await start_at_work("other", **ways)
    for right, each in enumerate((lender, full, node, other), 3):
        assert published(each.node, verifier, exam, right) > 0

    for reader in (lender, full, node, other):
        for right, writer in enumerate((lender, full, node, other), 3):
            news = await reader.ear.hear(
                LeaderboardChanged, lambda news, who=writer.identity: of(news.comparison, who) is not None
            )
            assert of(news.comparison, writer.identity).right == right
        assert reader.ear.all(RecordRejected) == []
    assert any((messages.kind, messages.to) == ("sheet", lender.identity.peer_id) for messages in node.node.outbox.newest())


async def test_marks_outlive_a_restart(start: Start, charter: Charter, verifier: Verifier, exam: Exam, tmp_path: Path) -> None:
    stored = tmp_path / "charter.msgpack"
    before = await start("one", leaderboard=True, scores_file=stored)
    published(before.node, verifier, exam, 7)
    await before.ear.hear(LeaderboardChanged)
    await before.node.close()

    restarted = await start("one", leaderboard=True, scores_file=stored)

    news = await restarted.ear.hear(LeaderboardChanged)
    assert (of(news.comparison, before.identity).right, news.comparison.sheets) == (7, 1)
    assert news.comparison.since <= exam.epoch * 600, "since the first mark, not since this start"


async def test_a_sheet_that_is_announced_as_groups_is_refused_and_the_pool_stays_empty(
    start: Start, seed_address: str, charter: Charter, verifier: Verifier, exam: Exam
) -> None:
    node = await start("one", seeds=(seed_address,), leaderboard=True)
    other = await start("other", seeds=(seed_address,), leaderboard=True)
    own = answer_sheet.signed(
        AnswerSheet(origin=node.identity.peer_id, epoch=exam.epoch, exam=exam.digest, round=1, learned=0, model="starter",
              answers=tuple(truths(verifier, exam, 16))),
        charter, node.identity,
    )  # fmt: skip
    groups = answered(charter, verifier, node.identity.peer_id, question_ids(charter, verifier, node.identity.peer_id, 1))
    record = RolloutRecord(origin=node.identity.peer_id, round=1, epoch=exam.epoch, model="starter", groups=tuple(groups))
    node.node._publisher._published[hashlib.sha256(own).digest()] = PublishedRecord(own, record)
    node.node._publisher.renew()

    dropped = await other.ear.hear(RecordRejected)

    assert (dropped.origin, dropped.reason) == (node.identity.peer_id, Fault.MALFORMED_COMPRESSION)
    assert other.node.waiting() == ()


async def test_whoever_changes_their_mind_is_heard_at_once(
    start_at_work: Start, seed_address: str, verifier: Verifier, exam: Exam
) -> None:
    node = await start_at_work("one", seeds=(seed_address,))
    node.node.leaderboard.enable(on=True)
    assert published(node.node, verifier, exam, 3) > 0
    await node.ear.hear(LeaderboardChanged)
    named = hashlib.sha256(node.node.leaderboard.own[0]).digest()
    assert await node.node._give_payload(bytes(38), named)
    node.node.leaderboard.enable(on=False)
    assert await node.node._give_payload(bytes(38), named) == b""


async def test_a_liars_sheets_are_refused_and_it_is_not_asked_again_for_a_while(
    start: Start, charter: Charter, verifier: Verifier, exam: Exam, tmp_path: Path
) -> None:
    thief, victim = fresh_identity(tmp_path, "thief"), fresh_identity(tmp_path, "victim")

    def lie(fault: Fault, **changes: object) -> tuple[Identity, bytes, Fault]:
        liar = fresh_identity(tmp_path, fault.name)
        return liar, packed(liar, charter, **{"epoch": exam.epoch, "exam": exam.digest, **changes}), fault

    lies = (
        lie(Fault.OTHER_QUESTIONS, exam=bytes(32)),
        lie(Fault.MALFORMED_SHEET, answers=[["a", True, 1.0]] * 16),  # rewards are claimed
        (thief, packed(victim, charter, epoch=exam.epoch, exam=exam.digest), Fault.FORGED_SHEET),
        (fresh_identity(tmp_path, "flood"), bytes(answer_sheet.MAX_BYTES + 1), Fault.WRONG_SHEET_SIZE),
    )
    reader = await start("reader", leaderboard=True)
    (address, *_) = await reader.node.addresses()

    reasons = await asyncio.gather(*(refused(reader, address, liar, blob, charter) for liar, blob, _ in lies))

    assert reasons == [fault for _, _, fault in lies]
    assert reader.ear.all(LeaderboardChanged) == []


async def test_an_old_sheet_is_nobodys_offence(start_at_work: Start, seed_address: str, verifier: Verifier, exam: Exam) -> None:
    slow = await start_at_work("slow", seeds=(seed_address,), leaderboard=True)
    published(slow.node, verifier, exam, 5)
    await slow.ear.hear(LeaderboardChanged)
    reader = await start_at_work("reader", seeds=await slow.node.addresses(), clock=lambda: time.time() + 2 * EPOCH_SECONDS)
    marking, trust, origin = reader.node.leaderboard, reader.node._reputations, slow.identity.peer_id
    await reader.ear.hear(GroupsArrived, lambda news: news.origin == origin)
    be_of_use(trust, origin)

    marking.on_announcements({origin: naming(slow.node.leaderboard.own[0], reader.node._context.charter)})
    await marking._look(reader.node.transport)

    assert origin in marking._read, "it was fetched, and is not fetched again"
    assert reader.ear.all(RecordRejected) == []
    assert trust.of(origin).trusted
    assert marking.scores.sheets == 0


async def test_a_sheet_that_nobody_would_mark_any_more_is_not_named(start: Start, verifier: Verifier, exam: Exam) -> None:
    now = [time.time()]
    live = await start("slow", leaderboard=True, clock=lambda: now[0])
    published(live.node, verifier, exam, 5)
    await live.ear.hear(LeaderboardChanged)
    named = live.node.leaderboard.own[1]
    assert named
    now[0] += 2 * EPOCH_SECONDS
    assert live.node.leaderboard.own == (b"", b"")
    assert live.node.leaderboard.get(named), "whoever heard of it before may ask"


async def test_an_exam_that_cannot_be_made_here_is_no_fault_of_whoever_answered(
    start: Start, charter: Charter, exam: Exam, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = await start("reader"), fresh_identity(tmp_path, "writer")
    marking = reader.node.leaderboard
    blob = packed(writer, charter, epoch=exam.epoch, exam=exam.digest)
    monkeypatch.setattr(marking, "_uploaded", lambda sha256: blob)

    def fail(_ids: object) -> None:
        raise VerifierError("The judging process keeps dying.")

    monkeypatch.setattr(marking._context.verifier, "questions", fail)
    marking.on_announcements({writer.peer_id: naming(blob, charter)})
    await marking._look(reader.node.transport)
    assert writer.peer_id in marking._read
    assert reader.ear.all(RecordRejected) == []


async def refused(reader: Live, address: str, liar: Identity, blob: bytes, charter: Charter) -> str:
    """The reason why a liar's sheet was refused."""

    announced = naming(blob, charter)

    async def give(_peer_id: bytes, request: bytes) -> bytes:
        return blob if request == announced.sheet else b""

    signed = announcements.signed(announced, liar)
    services = Services(payload=give, handshake=lambda: handshake.write(charter.digest, signed))
    dht = await open_network(options(), liar, services, port=0)
    try:
        await dht.connect(address)
        dropped = await reader.ear.hear(RecordRejected, lambda news: news.origin == liar.peer_id)
        await reader.ear.peer(liar.peer_id, lambda news: news.peer.doubted_until > time.time())
        return dropped.reason
    finally:
        await dht.close()


@pytest.mark.parametrize(("times", "strangers"), [(0.0, [False, True]), (1e9, [True, True])])
async def test_whoever_has_sheets_marked_rests_for_it_and_ever_new_names_as_soon_as_they_used_up_what_they_have_together(
    start: Start, charter: Charter, verifier: Verifier, exam: Exam, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    times: float, strangers: list[bool],
) -> None:  # fmt: skip
    reader = await start("reader")  # looks only when the test does
    marking, friend = reader.node.leaderboard, fresh_identity(tmp_path, "friend")
    marking._rate_limits.work = JointRateLimit(0.0, 1e-6, times)
    be_of_use(marking._reputations, friend.peer_id)
    writers = [friend, *(fresh_identity(tmp_path, name) for name in ("new", "newer"))]
    blobs = [packed(each, charter, epoch=exam.epoch, exam=exam.digest, answers=[["a", True]] * 16) for each in writers]
    lodged = {hashlib.sha256(blob).digest(): blob for blob in blobs}
    monkeypatch.setattr(marking, "_uploaded", lambda sha256: lodged.get(sha256, b""))
    for _ in range(2):
        marking.on_announcements({each.peer_id: naming(blob, charter) for each, blob in zip(writers, blobs, strict=True)})
        await marking._look(reader.node.transport)

    marked = [marking.scores.epoch_of(each.peer_id) == exam.epoch for each in writers]
    assert marked[0], "it answers for itself"
    assert sorted(marked[1:]) == strangers
    assert all(marking._rate_limits.used_up(marking._reputations.of(each.peer_id).payers) for each in writers)


async def test_sheets_are_paid_for_like_groups_whatever_they_are(start: Start, charter: Charter, tmp_path: Path) -> None:
    reader = await start("reader")  # looks only when the test does
    marking, pulled = reader.node.leaderboard, []

    class Flood:
        network, calls_peers = property(lambda self: self), True

        async def pull(self, peer_id: bytes, _sha256: bytes, _seconds: float, _certificate: bytes) -> bytes:
            pulled.append(peer_id)
            return bytes(2 * answer_sheet.MAX_BYTES)

    marking._rate_limits.pulls = JointRateLimit(0.0, 1.0, TOGETHER)
    marking.on_announcements({fresh_identity(tmp_path, name).peer_id: naming(b"no sheet", charter) for name in ("one", "other")})
    await marking._look(Flood())
    assert len(pulled) == 1
    assert marking._rate_limits.used_up(marking._reputations.of(pulled[0]).payers)


async def test_the_names_of_one_that_rests_keep_nobody_else_waiting(start: Start, charter: Charter, tmp_path: Path) -> None:
    reader = await start("reader")  # looks only when the test does
    marking, requests = reader.node.leaderboard, []
    honest = fresh_identity(tmp_path, "honest").peer_id
    reader.node._reputations.update_connections({honest: ("direct", "8.8.8.0/24")})

    class RecordedPulls:
        network, calls_peers = property(lambda self: self), True

        async def pull(self, peer_id: bytes, _sha256: bytes, _seconds: float, _certificate: bytes) -> bytes:
            requests.append(peer_id)
            return b""

    crowd = [os.urandom(len(honest)) for _ in range(500)]
    marking._rate_limits.work.charge(reader.node._reputations.of(crowd[0]).payers, 1e6)
    marking.on_announcements(dict.fromkeys([*crowd, honest], naming(b"sheet", charter)))
    await marking._look(RecordedPulls())
    assert requests == [honest]


async def test_silent_names_of_one_range_do_not_keep_others_from_being_marked(
    start_at_work: Start, charter: Charter, verifier: Verifier, exam: Exam, tmp_path: Path
) -> None:
    honest = await start_at_work("honest", leaderboard=True)
    published(honest.node, verifier, exam, 9)
    await honest.ear.hear(LeaderboardChanged)
    reader = await start_at_work("reader", seeds=await honest.node.addresses(), patience=1.0)  # looks only when the test does
    marking, origin, requests = reader.node.leaderboard, honest.identity.peer_id, []

    async def stay_silent(_peer_id: bytes, request: bytes) -> bytes:
        requests.append(request)
        return await asyncio.get_running_loop().create_future()

    one_range = fresh_identity(tmp_path, "crowd")
    crowd = await open_network(options(), one_range, Services(payload=stay_silent), port=0)
    try:
        await crowd.connect((await reader.node.addresses())[0])
        for known in (origin, one_range.peer_id):
            await reader.ear.peer(known, lambda news: news.peer.connection != "gone")
        silent = {os.urandom(len(origin)): os.urandom(32) for _ in range(500)}
        names = {name: msgspec.structs.replace(naming(sha, charter), via=(one_range.peer_id,)) for name, sha in silent.items()}
        marking.on_announcements({**names, origin: naming(honest.node.leaderboard.own[0], charter)})
        while marking.scores.epoch_of(origin) < 0 and len(requests) < 24:  # again where a busy computer was too late
            await marking._look(reader.node.transport)
    finally:
        await crowd.close()
    assert requests, "some of them were in the way"
    assert [(mark.origin, mark.right) for mark in marking.scores.all()] == [(origin, 9)]
    assert reader.ear.all(RecordRejected) == []


async def test_whoever_was_called_for_its_sheet_is_counted_with_where_it_is(
    start: Start, charter: Charter, exam: Exam, tmp_path: Path
) -> None:
    reader, writer = await start("reader"), fresh_identity(tmp_path, "writer")
    marking, trust = reader.node.leaderboard, reader.node._reputations
    blob = packed(writer, charter, epoch=exam.epoch, exam=exam.digest, answers=[["a", True]] * 16)

    class Called:
        network, calls_peers = property(lambda self: self), True

        async def pull(self, *_arguments: object) -> bytes:
            return blob

        async def refresh_peers(self) -> None:
            trust.update_connections({writer.peer_id: ("direct", "8.8.4.0/24")})

    marking.on_announcements({writer.peer_id: naming(blob, charter)})
    await marking._look(Called())
    assert [mark.source for mark in marking.scores.all()] == ["8.8.4.0/24"]


async def test_trusted_ones_are_asked_before_strangers_from_the_same_place(start: Start, charter: Charter) -> None:
    reader = await start("reader")
    crowd = [number.to_bytes(38, "big") for number in range(100)]
    for peer_id in crowd[90:]:
        be_of_use(reader.node._reputations, peer_id)
    turns = reader.node.leaderboard._in_turn([(peer_id, naming(b"sheet", charter)) for peer_id in crowd])
    assert {peer_id for peer_id, _ in turns[:10]} == set(crowd[90:])


def naming(blob: bytes, charter: Charter) -> Announcement:
    now = time.time()
    return Announcement(
        charter=charter.digest, sha256=bytes(32), size=1, round=1, epoch=epoch_at(now), specialties=1, model="m",
        expires=int((now + 200) * 1000), sheet=hashlib.sha256(blob).digest(),
    )  # fmt: skip


def test_anybody_comes_to_the_same_marks(charter: Charter, verifier: Verifier, exam: Exam, identity: Identity) -> None:
    record = AnswerSheet(
        origin=identity.peer_id, epoch=exam.epoch, exam=exam.digest, round=1, learned=0, model="m",
        answers=tuple(truths(verifier, exam, 9)),
    )  # fmt: skip
    read = answer_sheet.read(answer_sheet.signed(record, charter, identity), charter, origin=identity.peer_id)
    assert count_right(read, exam, verifier) == count_right(record, exam, verifier) == 9
