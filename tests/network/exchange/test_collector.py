"""Which peers the collector skips, and in which order it judges. test_node.py tests what it collects, with running nodes."""

import asyncio
import hashlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec
import pytest

import weak_keys
from network.loopback import SOON, Ear, answered, be_of_use, fresh_identity, judged, options, question_ids
from waggle.core.errors import VerifierGone
from waggle.core.peer_id import PEER_ID_BYTES, PEER_ID_PREFIX
from waggle.network.exchange import collector
from waggle.network.exchange.collector import MAX_PULL_BYTES, REST_S, FailedPull, RolloutCollector, peers_to_skip, useful_groups
from waggle.network.identity.keys import SIGNATURE_BYTES, Identity
from waggle.network.limits.address_ranges import Route
from waggle.network.limits.named_calls import CALLS_BURST, CLIENTS_LEAVE, OWN
from waggle.network.limits.rate_limits import PULL_RATE, TOGETHER, WORK_BURST, JointRateLimit, PeerRateLimits, RateLimit
from waggle.network.messages import rollout_record
from waggle.network.messages.announcement import Announcement
from waggle.network.messages.events import GroupsArrived, RecordRejected
from waggle.network.messages.faults import Fault
from waggle.network.messages.rollout_record import MAX_BLOB, RolloutRecord
from waggle.network.open_node import open_node
from waggle.network.transport.interface import FAILED_PULL_COST, PeerAway
from waggle.tasks.charter import Charter
from waggle.tasks.questions import Question, epoch_at
from waggle.tasks.rollout_group import NEWCOMERS, Completion, Verdict
from waggle.tasks.sandbox.verifier import Verifier
from waggle_lab.security import attacks
from waggle_lab.security.attacks import Scene

SLOW = "<answer>slow</answer>"  # a record with it takes hundreds of times what an honest one takes, as no audited scorer does
SLOW_S = 0.05
QUICK_S = 0.001  # a slow record takes longer than four times this
UNANSWERED = {b"peer": FailedPull(100.0, b"1" * 32, 15.0)}


@pytest.mark.parametrize(
    ("now", "here", "offers", "rests"),
    [
        (99.0, {b"peer"}, b"2" * 32, True),
        (101.0, {b"peer"}, b"1" * 32, False),
        (101.0, set(), b"2" * 32, False),
        (101.0, set(), b"1" * 32, True),
    ],
)
def test_a_peer_that_did_not_answer_rests_and_then_waits_to_be_connected_or_to_offer_something_else(
    now: float, here: set[bytes], offers: bytes, rests: bool
) -> None:
    current = {
        b"peer": Announcement(charter=bytes(32), sha256=offers, size=1, round=1, epoch=1, specialties=1, model="", expires=1)
    }
    assert (peers_to_skip(UNANSWERED, current, here, now) == [b"peer"]) == rests


def offered(via: tuple[bytes, ...] = ()) -> Announcement:
    return Announcement(
        charter=bytes(32), sha256=b"1" * 32, size=1, round=1, epoch=1, specialties=1, model="", expires=1, via=via
    )  # fmt: skip


@pytest.mark.parametrize(
    ("light", "met", "rests"), [(False, "", True), (False, "origin", True), (False, "giver", False), (True, "", False)]
)
def test_what_did_not_come_is_asked_for_again_where_its_giver_is_connected_or_gateways_do_the_calling(
    charter: Charter, verifier: Verifier, tmp_path: Path, light: bool, met: str, rests: bool
) -> None:
    listener = Listener(tmp_path, charter, verifier, light=light)
    peers = {name: fresh_identity(tmp_path, name).peer_id for name in ("origin", "giver")}
    if met:
        listener.node._reputations.update_connections({peers[met]: ("direct", "192.0.2.0/24")})
    listener.gathering._failed = {peers["origin"]: FailedPull(0.0, b"1" * 32, REST_S)}
    current = {peers["origin"]: offered(via=(peers["giver"],))}
    assert (listener.gathering._peers_to_skip(listener.node.transport, current) == [peers["origin"]]) == rests


async def test_what_goes_on_not_coming_is_asked_for_ever_less_often(
    charter: Charter, verifier: Verifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: object, paid: Callable[[int], None], **__: object) -> bytes:
        paid(0)
        return b""

    monkeypatch.setattr(collector, "fetch", nothing)
    listener, origin = Listener(tmp_path, charter, verifier), fresh_identity(tmp_path, "origin").peer_id
    standing = listener.node._reputations.of(origin)
    rests = []
    for each in (offered(), offered(), offered(), msgspec.structs.replace(offered(), sha256=b"2" * 32)):
        await listener.gathering._pull(listener.node.transport, origin, each, standing.payers)
        rests.append(listener.gathering._failed[origin].rest)
    assert rests == [REST_S, 2 * REST_S, 4 * REST_S, REST_S]


def test_neither_newcomers_nor_those_of_no_use_promise_anything() -> None:
    known, fresh, barren = judged(1, 1), msgspec.structs.replace(judged(2, 1), source=NEWCOMERS), judged(3, 1)
    assert useful_groups([known, fresh, barren], {barren.group.origin}) == [known]


class Listener:
    """A node that is not started: what it pulls is already in `blobs`."""

    def __init__(self, folder: Path, charter: Charter, verifier: Verifier, *, light: bool = False) -> None:
        self.folder, self.charter, self.verifier, self.ear, self.rests = folder, charter, verifier, Ear(), False
        own = fresh_identity(folder, "own")
        self.node = open_node(options(light=light), charter, own, verifier, self.ear, is_paused=lambda: self.rests)
        self.blobs: dict[bytes, bytes] = {}
        self.gathering._uploaded = lambda sha256: self.blobs.get(sha256, b"")

    @property
    def gathering(self) -> RolloutCollector:
        return self.node._collector

    @property
    def accounts(self) -> PeerRateLimits:
        return self.gathering._rate_limits

    @property
    def origins(self) -> list[bytes]:
        return [news.origin for news in self.ear.all(GroupsArrived)]

    def met(self, name: str, source: str, route: Route = "direct") -> Identity:
        """A peer that is connected from this address range."""
        peer = fresh_identity(self.folder, name)
        known = {each.id: (each.connection, each.source) for each in self.node._reputations}
        self.node._reputations.update_connections({**known, peer.peer_id: (route, source)})
        return peer

    async def pull(self, origin: bytes, blob: bytes) -> None:
        sha256, now = hashlib.sha256(blob).digest(), time.time()
        self.blobs[sha256] = blob
        epoch = rollout_record.decode(
            blob, self.charter, origin=origin, now=now
        ).epoch  # a new one may have begun since it was made
        announced = Announcement(
            charter=self.charter.digest, sha256=sha256, size=len(blob), round=1, epoch=epoch, specialties=1, model="m",
            expires=1,
        )  # fmt: skip
        self.gathering._begin(self.node.transport, {origin: announced}, now)
        await self.gathering._pulling.pop(origin)

    def honest(self, peer: Identity) -> bytes:
        origin = peer.peer_id
        groups = tuple(answered(self.charter, self.verifier, origin, question_ids(self.charter, self.verifier, origin, 1)))
        return rollout_record.encode(
            RolloutRecord(origin=origin, round=1, epoch=groups[0].id.epoch, model="m", groups=groups), self.charter
        )

    def slow(self, peer: Identity, number: int = 1, texts: Sequence[str] = (SLOW,) * 15, count: int = 4) -> bytes:
        """Texts that are slow to judge, and the true answer, so that every group teaches."""
        scene = Scene(self.charter, self.verifier, peer, time.time(), canary="", round=number)
        groups = attacks.answering(scene, "bf", ["<answer>{truth}</answer>", *texts], count=count)
        return attacks.wire(scene, groups, round=1).blob


@pytest.fixture
def listener(tmp_path: Path, charter: Charter, verifier: Verifier, monkeypatch: pytest.MonkeyPatch) -> Listener:
    judge = verifier.judge_strangers

    def judge_slowly(answers: Iterable[tuple[Question, Completion]]) -> list[Verdict]:
        answers = list(answers)
        if any(completion.text == SLOW for _, completion in answers):
            time.sleep(SLOW_S)
            verifier.worked += SLOW_S
        return judge(answers)

    monkeypatch.setattr(verifier, "judge_strangers", judge_slowly)
    return Listener(tmp_path, charter, verifier)


@pytest.mark.parametrize("source", ["", "8.8.4.0/24"])
async def test_slow_answers_of_ever_new_names_are_judged_until_their_part_is_used_up_and_then_all_from_there_rest(
    listener: Listener, source: str
) -> None:
    listener.accounts.work = JointRateLimit(0.0, QUICK_S, TOGETHER)  # the first uses up both
    hostile = [listener.met(f"hostile {number}", source) for number in range(4)]
    for number, peer in enumerate([*hostile, *hostile]):
        await listener.pull(peer.peer_id, listener.slow(peer, number))
    assert listener.origins == [hostile[0].peer_id], "of what each sent twice"

    honest = listener.met("honest", "8.8.8.0/24")
    await listener.pull(honest.peer_id, listener.honest(honest))
    assert listener.origins[1:] == [honest.peer_id]


async def test_a_record_that_ends_the_verifier_is_paid_for_like_any_other(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener.accounts.work = JointRateLimit(0.0, 0.0, TOGETHER)
    judge = listener.verifier.judge_strangers

    def end(answers: Iterable[tuple[Question, Completion]]) -> None:
        judge(answers)
        raise VerifierGone("The judging process cannot be started.")

    monkeypatch.setattr(listener.verifier, "judge_strangers", end)
    hostile = listener.met("hostile", "8.8.4.0/24")
    await listener.pull(hostile.peer_id, listener.slow(hostile))
    assert not listener.accounts.work.has(listener.node._reputations.of(hostile.peer_id).payers)
    assert not listener.ear.news, "it is our own trouble"


@pytest.mark.parametrize("source", ["", "relay"])
async def test_a_stranger_that_was_slow_rests_and_no_other_that_comes_from_there(listener: Listener, source: str) -> None:
    listener.accounts.work = JointRateLimit(0.0, QUICK_S, 1e6)  # together they have 1000 s
    hostile, honest = listener.met("hostile", source), listener.met("honest", source)
    await listener.pull(hostile.peer_id, listener.slow(hostile))
    await listener.pull(hostile.peer_id, listener.slow(hostile, 2))
    await listener.pull(honest.peer_id, listener.honest(honest))
    assert listener.origins == [hostile.peer_id, honest.peer_id]


async def test_trusted_peers_of_one_address_range_have_no_more_than_its_part_and_leave_others_theirs(listener: Listener) -> None:
    listener.accounts.work = JointRateLimit(0.0, QUICK_S, TOGETHER)
    crowd = [listener.met(f"false friend {number}", "8.8.4.0/24") for number in range(3)]
    friend = listener.met("friend", "8.8.8.0/24")
    for peer in (*crowd, friend):
        be_of_use(listener.node._reputations, peer.peer_id)
    for peer in crowd:
        await listener.pull(peer.peer_id, listener.slow(peer))
    await listener.pull(friend.peer_id, listener.honest(friend))
    assert listener.origins == [crowd[0].peer_id, friend.peer_id]


@pytest.mark.parametrize("source", ["8.8.4.0/24", "relay"])
async def test_a_trusted_peer_answers_for_itself_alone_whichever_stranger_comes_from_there(
    listener: Listener, source: str
) -> None:
    listener.accounts.work = JointRateLimit(0.0, QUICK_S, 1e6)
    hostile, friend = listener.met("hostile", source), listener.met("friend", source)
    be_of_use(listener.node._reputations, friend.peer_id)
    await listener.pull(hostile.peer_id, listener.slow(hostile))
    await listener.pull(hostile.peer_id, listener.slow(hostile, 2))
    await listener.pull(friend.peer_id, listener.slow(friend))
    await listener.pull(friend.peer_id, listener.slow(friend, 2))
    assert listener.origins == [hostile.peer_id, friend.peer_id], "its own slow record counts"


@pytest.mark.parametrize("source", ["", "relay"])
async def test_a_few_trusted_peers_of_no_range_who_are_slow_let_no_other_one_rest_and_many_no_stranger(
    listener: Listener, source: str
) -> None:
    work = listener.accounts.work = JointRateLimit(0.0, WORK_BURST, TOGETHER)
    crowd = [listener.met(f"false friend {number}", source) for number in range(12)]
    friend, late, stranger = (listener.met(name, source) for name in ("friend", "late", "stranger"))
    for peer in (*crowd, friend, late):
        be_of_use(listener.node._reputations, peer.peer_id)
    for peer in crowd[:9]:
        work.charge(listener.node._reputations.of(peer.peer_id).payers, WORK_BURST)
    await listener.pull(friend.peer_id, listener.honest(friend))
    for peer in crowd[9:]:
        work.charge(listener.node._reputations.of(peer.peer_id).payers, WORK_BURST)
    for peer in (late, stranger):
        await listener.pull(peer.peer_id, listener.honest(peer))
    assert listener.origins == [friend.peer_id, stranger.peer_id]


async def test_trusted_names_that_never_connect_rest_as_a_crowd(listener: Listener) -> None:
    listener.accounts.work = JointRateLimit(0.0, QUICK_S, TOGETHER)  # the first uses up both
    crowd = [fresh_identity(listener.folder, f"false friend {number}") for number in range(3)]
    friend = listener.met("friend", "relay", "relay")
    for peer in (*crowd, friend):
        be_of_use(listener.node._reputations, peer.peer_id)
    for peer in crowd:
        await listener.pull(peer.peer_id, listener.slow(peer))
    await listener.pull(friend.peer_id, listener.honest(friend))
    assert listener.origins == [crowd[0].peer_id, friend.peer_id]


async def test_a_trusted_peer_waits_for_two_records_of_others_at_most(listener: Listener) -> None:
    hostile = [listener.met(f"hostile {number}", f"8.8.{number}.0/24") for number in range(8)]
    friend = listener.met("friend", "8.9.0.0/24")
    be_of_use(listener.node._reputations, friend.peer_id)
    line = [(peer.peer_id, listener.slow(peer, count=1)) for peer in hostile] + [(friend.peer_id, listener.honest(friend))]

    await asyncio.gather(*(listener.pull(origin, blob) for origin, blob in line))

    assert len(listener.origins) == 9
    assert friend.peer_id in listener.origins[:3]


async def test_while_the_computer_is_to_rest_nothing_is_judged_and_afterwards_it_is(listener: Listener) -> None:
    peer = listener.met("peer", "")
    blob = listener.honest(peer)
    listener.rests = True
    await listener.pull(peer.peer_id, blob)
    assert listener.origins == []
    assert not listener.gathering._tried

    listener.rests = False
    await listener.pull(peer.peer_id, blob)
    assert listener.origins == [peer.peer_id]


class Flood:
    """A network whose directory is full of unknown names, new ones in each look, that give as much as one call carries."""

    replicas, calls_peers = 1, True

    def __init__(self, charter: Charter, size: int = 1) -> None:
        self.pulled = 0
        self.breaks_off, self.gives = False, bytes(MAX_PULL_BYTES)
        self.announced = Announcement(
            charter=charter.digest, sha256=bytes(32), size=size, round=1, epoch=epoch_at(time.time()), specialties=1, model="m",
            expires=1,
        )  # fmt: skip

    @property
    def network(self) -> "Flood":
        return self

    async def refresh_peers(self) -> None:
        """Do nothing."""

    async def read_directory(self, _key: str) -> dict[bytes, bytes]:
        signed = msgspec.msgpack.encode(self.announced) + bytes(SIGNATURE_BYTES)
        return {os.urandom(PEER_ID_BYTES): signed for _ in range(40)}

    async def pull(self, _peer_id: bytes, _sha256: bytes, _seconds: float, _certificate: bytes = b"") -> bytes:
        self.pulled += 1
        if self.breaks_off:
            raise PeerAway("in the middle of it")
        return self.gives


@pytest.mark.parametrize(
    ("light", "via", "bits"), [(False, (), 12), (False, (PEER_ID_PREFIX + bytes(range(32)),), 0), (True, (), 0)]
)
async def test_light_clients_send_nobody_deeper_and_go_no_deeper_themselves(
    tmp_path: Path, charter: Charter, verifier: Verifier, light: bool, via: tuple[bytes, ...], bits: int
) -> None:
    node = open_node(options(light=light), charter, fresh_identity(tmp_path, "own"), verifier, Ear())
    network = Flood(charter)
    network.announced = msgspec.structs.replace(network.announced, depth=12, via=via)
    for _ in range(20):
        await node._collector._read(network)
    assert (node._collector._depth.bits, node._collector._depth.peers_in_shard) == (bits, 40)


async def look(gathering: RolloutCollector, network: Flood) -> int:
    """The number of completed pulls in one look."""
    before = network.pulled
    await gathering._look(network)
    await asyncio.gather(*gathering._pulling.values())
    return network.pulled - before


async def test_names_that_send_more_than_they_announced_keep_others_waiting_for_seconds_only(listener: Listener) -> None:
    now, network, waited = 1000.0, Flood(listener.charter), [0]
    listener.gathering._rate_limits = PeerRateLimits(clock=lambda: now)
    for _ in range(40):
        if await look(listener.gathering, network):
            waited.append(0)
        waited[-1] += 1
        now += 1.0
    assert max(waited) <= 1 + MAX_PULL_BYTES / (TOGETHER * PULL_RATE)
    assert network.pulled > 10


async def test_whoever_announces_much_is_chosen_as_early_as_whoever_announces_next_to_nothing(listener: Listener) -> None:
    pulled = []
    for size in (1, MAX_BLOB):
        listener.accounts.pulls = JointRateLimit(0.0, 1.0, TOGETHER)
        pulled.append(await look(listener.gathering, Flood(listener.charter, size)))
    assert pulled == [1, 1]


async def test_names_that_nobody_met_do_not_use_up_what_relayed_peers_have(listener: Listener) -> None:
    listener.accounts.pulls = JointRateLimit(0.0, 1.0, TOGETHER)
    assert await look(listener.gathering, Flood(listener.charter)) == 1
    relayed = listener.met("relayed", "relay", "relay")
    await listener.pull(relayed.peer_id, listener.honest(relayed))
    assert listener.origins == [relayed.peer_id]


@pytest.mark.parametrize("via", [(), (PEER_ID_PREFIX + bytes(range(32)),)], ids=["by themselves", "through others"])
async def test_names_that_nobody_met_are_called_in_vain_so_often_together_and_who_is_here_is_asked_as_before(
    listener: Listener, via: tuple[bytes, ...]
) -> None:
    """Each of them may have the address of a bystander, and offers something new at every look."""
    network, unmet = Flood(listener.charter), listener.gathering._accounts.unmet_calls
    network.breaks_off, network.announced = True, msgspec.structs.replace(network.announced, via=via)
    unmet._budget = RateLimit(0.0, 2.0)
    assert sum([await look(listener.gathering, network) for _ in range(5)]) == (1 if via else 2)
    here = listener.met("here", "8.8.4.0/24")
    await listener.pull(here.peer_id, listener.honest(here))
    assert listener.origins == [here.peer_id]


async def test_whomever_a_light_client_names_is_called_in_vain_no_more_often_than_all_that_clients_name(
    listener: Listener,
) -> None:
    network, node = Flood(listener.charter), listener.node
    network.breaks_off, node.transport = True, network
    node._accounts.unmet_calls._budget = RateLimit(0.0, 2.0)
    for _ in range(5):
        assert await node._pull_for(PEER_ID_PREFIX + os.urandom(32), bytes(32), 1.0) == b""
    assert network.pulled == 2
    node._accounts.unmet_calls._budget = RateLimit(0.0, 100.0)
    for key in weak_keys.BAD:
        assert await node._pull_for(weak_keys.peer_id(key), bytes(32), 1.0) == b""
    assert network.pulled == 2, "for a key of which anybody is the owner, nobody is called"
    node._accounts.unmet_calls._budget = RateLimit(0.0, 0.0)
    here = listener.met("here", "8.8.4.0/24")
    await node._pull_for(here.peer_id, bytes(32), 1.0)
    assert network.pulled == 3


async def test_a_light_client_that_names_a_gateway_for_ever_leaves_us_half_of_the_calls_to_it(listener: Listener) -> None:
    network, node, gateway = Flood(listener.charter), listener.node, listener.met("gateway", "8.8.4.0/24").peer_id
    network.gives, node.transport = b"", network
    node._accounts.named_calls._budget = RateLimit(0.0, CALLS_BURST)
    for _ in range(int(2 * CALLS_BURST)):
        await node._pull_for(gateway, bytes(32), 1.0)
    assert network.pulled == CALLS_BURST - CLIENTS_LEAVE
    assert node._accounts.named_calls.may(gateway)


async def test_names_that_nobody_met_and_that_give_something_use_nothing_up(listener: Listener) -> None:
    network, unmet = Flood(listener.charter), listener.gathering._accounts.unmet_calls
    network.breaks_off, unmet._budget = False, RateLimit(0.0, 1.0)
    listener.accounts.pulls = JointRateLimit(0.0, 1e12, TOGETHER)
    assert [await look(listener.gathering, network) for _ in range(5)] == [1] * 5
    assert unmet.may(OWN)


async def test_a_pull_that_is_broken_off_is_paid_for(listener: Listener) -> None:
    network, traffic = Flood(listener.charter), listener.node._bandwidth
    network.breaks_off, traffic.limit = True, 1000.0
    listener.accounts.pulls = JointRateLimit(0.0, 1.5 * FAILED_PULL_COST / TOGETHER, TOGETHER)
    assert await look(listener.gathering, network) == 1
    assert not traffic.may_receive()
    traffic.limit = None
    assert [await look(listener.gathering, network) for _ in range(2)] == [1, 0]


async def test_a_payload_of_another_size_is_refused_before_it_waits_for_its_turn(listener: Listener) -> None:
    peer, blob = listener.met("liar", "8.8.4.0/24"), bytes(MAX_PULL_BYTES)
    listener.blobs[hashlib.sha256(blob).digest()] = blob
    announced = Announcement(
        charter=listener.charter.digest, sha256=hashlib.sha256(blob).digest(), size=100, round=1, epoch=epoch_at(time.time()),
        specialties=1, model="m", expires=1,
    )  # fmt: skip
    async with listener.gathering._judging_line, asyncio.timeout(SOON):
        listener.gathering._begin(listener.node.transport, {peer.peer_id: announced}, time.time())
        await listener.gathering._pulling.pop(peer.peer_id)
    assert [news.reason for news in listener.ear.all(RecordRejected)] == [Fault.OTHER_PAYLOAD]
    assert (peer.peer_id, announced.sha256) in listener.gathering._tried
