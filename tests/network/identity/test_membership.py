"""A private swarm admits the holders of its key, and gives nothing to others."""

import stat
import sys
import time
from pathlib import Path

import msgspec
import pytest

from network.loopback import SOON, Ear, answered, be_of_use, fresh_identity, options, question_ids, serving, share
from waggle.core.errors import CharterError, SwarmError
from waggle.network.identity import membership
from waggle.network.identity.keys import Identity
from waggle.network.identity.membership import CERTIFICATE_BYTES, LIFETIME_S, MAX_LIFETIME_S, Membership
from waggle.network.messages import announcement as announcements
from waggle.network.messages import directory
from waggle.network.messages.announcement import Announcement
from waggle.network.messages.events import GroupsArrived, RecordRejected
from waggle.network.open_node import open_node
from waggle.network.transport.availability import has_hivemind
from waggle.network.transport.hivemind.dht_validator import AnnouncementValidator
from waggle.network.transport.hivemind.network import HivemindNetwork, open_network
from waggle.network.transport.interface import Services
from waggle.tasks.charter import Charter, decode, encode
from waggle.tasks.questions import epoch_at
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm

KEY = bytes(range(32))
OTHER_KEY = bytes(32)
NOW = 1_800_000_000.0
PEER = b"\x00\x24\x08\x01\x12\x20" + bytes(32)


@pytest.fixture(scope="module")
def private() -> Charter:
    return msgspec.structs.replace(first_swarm(), name="A table in a café", admission=membership.public_key_of(KEY))


def at(charter: Charter, moment: float, key: bytes = b"", peer_id: bytes = PEER) -> Membership:
    return Membership(charter, peer_id, key, clock=lambda: moment)


def test_a_charter_says_whether_it_is_private_and_a_public_one_keeps_its_hash(private: Charter) -> None:
    assert decode(encode(private)) == private
    assert private.is_private
    assert not first_swarm().is_private
    assert b"admission" not in encode(first_swarm())
    with pytest.raises(CharterError):
        decode(encode(private).replace(private.admission_key.encode(), b"no key"))


def test_everybody_is_welcome_in_a_public_swarm() -> None:
    assert at(first_swarm(), NOW, KEY).certificate() == b""
    assert at(first_swarm(), NOW).admits(PEER, b"")


def test_a_certificate_is_for_one_peer_one_swarm_and_a_while(private: Charter) -> None:
    certificate = at(private, NOW, KEY).certificate()
    gate = at(private, NOW)
    assert len(certificate) == CERTIFICATE_BYTES
    assert gate.admits(PEER, certificate)
    assert not gate.admits(PEER[:-1] + b"\1", certificate)
    assert not at(msgspec.structs.replace(private, name="Another"), NOW).admits(PEER, certificate)
    assert not at(private, NOW + LIFETIME_S).admits(PEER, certificate)
    assert not at(private, NOW - MAX_LIFETIME_S).admits(PEER, certificate)


@pytest.mark.parametrize("nonsense", [b"", b"x", bytes(CERTIFICATE_BYTES), b"\xff" * CERTIFICATE_BYTES, bytes(1000)])
def test_nonsense_is_no_certificate(private: Charter, nonsense: bytes) -> None:
    assert not at(private, NOW).admits(PEER, nonsense)


def test_another_key_makes_no_certificate(private: Charter) -> None:
    assert not at(private, NOW).admits(PEER, membership.issue_certificate(OTHER_KEY, private.digest, PEER, NOW + 60))


def test_a_certificate_is_renewed_long_before_it_ends(private: Charter) -> None:
    moment = [NOW]
    own = Membership(private, PEER, KEY, clock=lambda: moment[0])
    first = own.certificate()
    assert own.certificate() is first
    moment[0] += LIFETIME_S / 2
    assert own.certificate() != first
    assert at(private, moment[0] + LIFETIME_S / 2 + 1).admits(PEER, own.certificate())


def test_a_key_is_kept_for_its_owner_only_and_shown_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "swarm.key"
    assert membership.read_key(path) == b""
    membership.write_key(path, OTHER_KEY)
    membership.write_key(path, KEY)
    assert membership.read_key(path) == KEY
    if sys.platform != "win32":  # which has access lists: tests/core/system/test_access_list.py
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]
    assert repr(KEY) not in repr(options(key=KEY))


@pytest.mark.parametrize(("key", "words"), [(b"", "key is not here"), (OTHER_KEY, "does not open"), (KEY[:-1], "does not open")])
async def test_a_node_without_the_key_does_not_start_and_says_why(
    private: Charter, identity: Identity, verifier: Verifier, key: bytes, words: str
) -> None:
    node = open_node(options(key=key), private, identity, verifier, Ear())
    with pytest.raises(SwarmError, match=words) as refused:
        await node.start()
    assert "invite" in refused.value.advice


def announced(charter: Charter, certificate: bytes) -> Announcement:
    now = time.time()
    return Announcement(
        charter=charter.digest, sha256=bytes(32), size=9, round=1, epoch=epoch_at(now), specialties=1, model="m",
        expires=int((now + 200) * 1000), certificate=certificate,
    )  # fmt: skip


async def announce(dht: HivemindNetwork, origin: Identity, offer: Announcement) -> bool:
    key = directory.key_of(offer.charter, 0, 0)
    return await dht.announce(key, origin.peer_id, announcements.signed(offer, origin), offer.expires_at)


async def test_members_of_a_private_swarm_share_and_an_outsider_neither_announces_nor_pulls(
    private: Charter, verifier: Verifier, tmp_path: Path
) -> None:
    ears = [Ear(), Ear()]
    own = [fresh_identity(tmp_path, name) for name in ("one", "other")]
    outsider = fresh_identity(tmp_path, "outsider")
    async with serving(fresh_identity(tmp_path, "seed"), private) as seed:
        nodes = [
            open_node(options(seeds=(seed,), key=KEY), private, identity, verifier, ear)
            for identity, ear in zip(own, ears, strict=True)
        ]
        dht = await open_network(options(), outsider, Services(), port=0)
        try:
            for node in nodes:
                await node.start()
            share(nodes[0], answered(private, verifier, own[0].peer_id, question_ids(private, verifier, own[0].peer_id, 1)))
            await ears[1].hear(GroupsArrived, lambda news: news.origin == own[0].peer_id)

            for address in (seed, (await nodes[0].addresses())[0]):
                await dht.connect(address)
            await dht.find_neighbours()
            (entry,) = (await dht.read_directory(directory.key_of(private.digest, 0, 0))).values()
            sha256 = announcements.parse(entry).sha256
            borrowed = announcements.parse(entry).certificate
            assert await dht.pull(own[0].peer_id, sha256, SOON) == b""
            assert await dht.pull(own[0].peer_id, sha256, SOON, borrowed) == b""  # it names its owner
            false = membership.issue_certificate(OTHER_KEY, private.digest, outsider.peer_id, time.time() + 60)
            assert await dht.pull(own[0].peer_id, sha256, SOON, false) == b""
            true = membership.issue_certificate(KEY, private.digest, outsider.peer_id, time.time() + 60)
            assert await dht.pull(own[0].peer_id, sha256, SOON, true) != b""

            assert not await announce(dht, outsider, announced(private, false))
            assert ears[1].all(RecordRejected) == []
        finally:
            for node in nodes:
                await node.close()
            await dht.close()


@pytest.mark.skipif(not has_hivemind(), reason="over hivemind it finds the other at the address of that")
async def test_a_member_whose_certificate_seems_wrong_by_our_clock_commits_no_offence(
    private: Charter, verifier: Verifier, tmp_path: Path
) -> None:
    member, late = (fresh_identity(tmp_path, name) for name in ("member", "late"))
    ear = Ear()
    giver = open_node(options(key=KEY), private, member, verifier, Ear())
    await giver.start()
    reader = open_node(options(key=KEY, seeds=tuple(await giver.addresses())), private, late, verifier, ear)
    try:
        share(giver, answered(private, verifier, member.peer_id, question_ids(private, verifier, member.peer_id, 1)))
        await reader.start()
        await ear.hear(GroupsArrived)  # so it announces
        be_of_use(reader._reputations, member.peer_id)
        reader._context.membership._clock = lambda: time.time() - MAX_LIFETIME_S
        assert await reader._collector._handshake(reader.transport, member.peer_id) is None
        assert member.peer_id in reader._collector._no_handshake, "it rests"
        assert ear.all(RecordRejected) == []
        assert reader._reputations.of(member.peer_id).trusted
    finally:
        await reader.close()
        await giver.close()


def test_the_guard_of_a_private_swarm_keeps_its_directory_for_members(private: Charter, identity: Identity) -> None:
    from network.transport.hivemind.test_dht_validator import Entry

    gate = Membership(private, identity.peer_id, KEY)
    watch = AnnouncementValidator(private.digest, member=gate.admits)

    def entry(certificate: bytes) -> Entry:
        offer, pack = announced(private, certificate), msgspec.msgpack.encode
        place = min(directory.places_of(private.digest, identity.peer_id))
        return Entry(place, pack(identity.peer_id), pack(announcements.signed(offer, identity)), offer.expires_at)

    assert watch.validate(entry(gate.certificate()))
    assert not watch.validate(entry(b""))
    assert not watch.validate(entry(bytes(CERTIFICATE_BYTES)))
