"""No message, address or file brings in a peer whose key anybody can sign for, though the library verifies its signatures."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import zstandard
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

import weak_keys
from network.loopback import Start, fresh_identity
from waggle.core.errors import BadRecord, SwarmError
from waggle.core.peer_id import WeakKey, is_peer_id, peer_id_of, text_of
from waggle.network import joined_swarms
from waggle.network.identity.keys import Identity, verify
from waggle.network.identity.membership import LIFETIME_S, Membership
from waggle.network.joined_swarms import JoinedSwarm, JoinedSwarms
from waggle.network.leaderboard import scores_file
from waggle.network.leaderboard.scores import SheetScore
from waggle.network.limits import reputation_file
from waggle.network.limits.reputation import PeerReputation
from waggle.network.messages import addresses, answer_sheet, directory, gateway_frames
from waggle.network.messages import announcement as announcements
from waggle.network.messages.announcement import Announcement
from waggle.network.messages.events import ReachChanged
from waggle.network.messages.faults import Fault
from waggle.network.transport.availability import has_hivemind
from waggle.network.transport.hivemind.call_limits import CallLimits, CallRefused
from waggle.network.transport.hivemind.dht_validator import AnnouncementValidator
from waggle.network.transport.hivemind.patches import load_hivemind, with_few_neighbours
from waggle.network.transport.interface import Services
from waggle.tasks.charter import PROTOCOL, Charter
from waggle.tasks.questions import epoch_at

NOW = 1_800_000_000.0
every_bad_key = pytest.mark.parametrize("key", weak_keys.BAD, ids=bytes.hex)
every_small_key = pytest.mark.parametrize("key", weak_keys.CANONICAL, ids=bytes.hex)


def forged(key: bytes, domain: bytes, body: Callable[[int], bytes]) -> bytes:
    """The first of the bodies under which the library takes a signature that nobody made, and the signature."""
    for number in range(1000):
        content = body(number)
        if weak_keys.is_signed(key, domain + weak_keys.peer_id(key) + content):
            return content + weak_keys.SIGNATURE
    raise AssertionError("the library refuses this key by itself")


def announced(charter: bytes, number: int, **changes: object) -> Announcement:
    fields = {"charter": charter, "sha256": bytes(32), "size": 9, "epoch": 5, "specialties": 3, "model": "m", "round": number}
    return Announcement(**{**fields, "expires": int((NOW + 300) * 1000), **changes})  # type: ignore[arg-type]


@every_bad_key
def test_it_is_no_peer_id_and_signs_nothing(key: bytes) -> None:
    bad = weak_keys.peer_id(key)
    assert not is_peer_id(bad)
    assert not any(verify(bad, b"domain\0", number.to_bytes(2), weak_keys.SIGNATURE) for number in range(100))
    with pytest.raises(WeakKey):
        peer_id_of(text_of(bad))


@every_bad_key
def test_an_address_that_names_it_is_refused_in_words(key: bytes) -> None:
    who, good = text_of(weak_keys.peer_id(key)), text_of(weak_keys.peer_id(bytes(range(32))))
    for address in (f"/ip4/8.8.8.8/tcp/1/p2p/{who}", f"/ip4/8.8.8.8/tcp/1/p2p/{who}/p2p-circuit/p2p/{good}"):
        assert not addresses.is_address(address)
        with pytest.raises(SwarmError, match="names a key for which everybody can sign"):
            addresses.peer_of(address)
    assert not addresses.is_gateway(f"wss://example.org/gateway#{who}")
    assert addresses.is_gateway(f"wss://example.org/gateway#{good}")


@every_small_key
def test_an_announcement_of_it_is_forged_and_no_entry_of_the_directory(key: bytes, charter: Charter) -> None:
    bad = weak_keys.peer_id(key)
    blob = forged(key, announcements.DOMAIN, lambda number: msgspec.msgpack.encode(announced(charter.digest, number)))
    with pytest.raises(BadRecord, match=Fault.FORGED_ANNOUNCEMENT):
        announcements.read(blob, bad)
    entry = msgspec.msgpack.encode(blob)
    for place in directory.places_of(charter.digest, bad):
        record = SimpleNamespace(key=place, subkey=msgspec.msgpack.encode(bad), value=entry, expiration_time=NOW + 300)
        assert not AnnouncementValidator(charter.digest, clock=lambda: NOW).validate(record)


@every_bad_key
def test_an_announcement_that_names_it_as_a_holder_is_refused(key: bytes, charter: Charter, identity: Identity) -> None:
    blob = announcements.signed(announced(charter.digest, 1, via=(weak_keys.peer_id(key),)), identity)
    with pytest.raises(BadRecord, match=Fault.MALFORMED_ANNOUNCEMENT):
        announcements.read(blob, identity.peer_id)


@every_small_key
def test_an_answer_sheet_of_it_is_forged(key: bytes, charter: Charter) -> None:
    bad = weak_keys.peer_id(key)

    def body(number: int) -> bytes:
        fields = [PROTOCOL, charter.digest, bad, 3000, bytes(32), number, 9, "starter", [["a", True]], b""]
        return zstandard.ZstdCompressor().compress(msgspec.msgpack.encode(fields))

    blob = forged(key, answer_sheet.DOMAIN, body)
    with pytest.raises(BadRecord, match=Fault.FORGED_SHEET):
        answer_sheet.read(blob, charter, origin=bad)


@pytest.mark.skipif(not has_hivemind(), reason="a node without hivemind lends no gateway")
async def test_a_gateway_admits_no_client_with_it(start: Start, charter: Charter) -> None:
    lender = await start("lender", web_port=0, gateway=True)
    for key in weak_keys.CANONICAL:
        async with connect(f"ws://127.0.0.1:{lender.node.web.port}/gateway") as connection:
            welcome = msgspec.msgpack.decode(await connection.recv(), type=gateway_frames.Welcome)
            head = welcome.peer_id + welcome.nonce
            nonce = forged(
                key, gateway_frames.DOMAIN, lambda number, head=head: head + hashlib.sha256(bytes([number % 256])).digest()
            )
            own_nonce = nonce[len(head) : -len(weak_keys.SIGNATURE)]
            hello = gateway_frames.Hello(weak_keys.peer_id(key), b"", weak_keys.SIGNATURE, own_nonce)
            await connection.send(msgspec.msgpack.encode(hello))
            with pytest.raises(ConnectionClosed):
                await connection.recv()


@every_small_key
def test_a_private_swarm_with_it_admits_nobody(key: bytes, charter: Charter, identity: Identity) -> None:
    private = msgspec.structs.replace(charter, admission=key.hex())
    for until in range(int(NOW), int(NOW + LIFETIME_S), 997):
        certificate = until.to_bytes(8) + weak_keys.SIGNATURE
        assert not Membership(private, identity.peer_id, clock=lambda: NOW).admits(identity.peer_id, certificate)


@every_bad_key
async def test_a_call_of_it_is_not_answered_and_it_is_no_neighbour(key: bytes) -> None:
    bad, hivemind = weak_keys.peer_id(key), load_hivemind()
    with pytest.raises(CallRefused):
        await CallLimits(Services()).admit(bad, hivemind.BytesValue())
    good = weak_keys.peer_id(bytes(range(32)))
    answer = hivemind.dht_pb2.FindResult(nearest_node_ids=[bytes(20)] * 2, nearest_peer_ids=[bad, good])
    (result,) = with_few_neighbours(hivemind.dht_pb2.FindResponse(results=[answer])).results
    assert list(result.nearest_peer_ids) == [good]


async def test_files_of_earlier_versions_that_know_it_begin_as_before(start: Start, seed_address: str, tmp_path: Path) -> None:
    good = fresh_identity(tmp_path, "friend").peer_id
    everybody = [*map(weak_keys.peer_id, weak_keys.BAD), good]
    reputations, known, scores = (tmp_path / name for name in ("standings.json", "known_peers.json", "marks.msgpack"))
    reputation_file.write(reputations, [PeerReputation(id=each, name="x", choice="muted") for each in everybody])
    known.write_bytes(
        msgspec.json.encode([*(f"/ip4/127.0.0.1/tcp/9/p2p/{text_of(each)}" for each in everybody[:-1]), seed_address])
    )
    epoch = epoch_at(NOW)
    scores_file.write(
        scores, [SheetScore(origin=each, epoch=epoch, round=1, learned=1, model="a", right=1, total=16) for each in everybody]
    )
    assert [peer.id for peer in reputation_file.read(reputations) or []] == [good]
    assert [score.origin for score in scores_file.read(scores, NOW)] == [good]

    node = await start("one", reputation_file=reputations, known_peers=known)

    assert (await node.ear.hear(ReachChanged, lambda news: news.reach == "connected")).peers == 1
    assert {peer.id for peer in node.node._reputations if peer.choice} == {good}


def test_a_joined_swarm_loses_a_seed_that_has_it_and_no_other(tmp_path: Path, charter: Charter) -> None:
    good, bad = (f"/ip4/8.8.8.8/tcp/1/p2p/{text_of(weak_keys.peer_id(key))}" for key in (bytes(range(32)), weak_keys.BAD[0]))
    book = JoinedSwarms(
        entries=(JoinedSwarm(charter="ab" * 32, seeds=(bad, good)), JoinedSwarm(charter="cd" * 32, seeds=(good,)))
    )
    joined_swarms.write(tmp_path / "swarms.json", book)
    assert [entry.seeds for entry in joined_swarms.read(tmp_path / "swarms.json").entries] == [(good,), (good,)]
