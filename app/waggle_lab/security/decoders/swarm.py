"""The decoders of the swarm room: what the network and invite links bring."""

import contextlib
import hashlib
import struct
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import zstandard

from waggle.core.errors import UNREADABLE, BadRecord, SwarmError
from waggle.core.peer_id import PEER_ID_PREFIX, is_peer_id, text_of
from waggle.network.identity import keys as identities
from waggle.network.identity import membership as admissions
from waggle.network.identity.keys import Identity
from waggle.network.messages import addresses, directory, gateway_frames
from waggle.network.messages import announcement as announcements
from waggle.network.messages import answer_sheet as sheets
from waggle.network.messages import handshake as greetings
from waggle.network.messages import invite as invites
from waggle.network.messages import rollout_record as records
from waggle.network.messages.announcement import Announcement
from waggle.network.messages.answer_sheet import AnswerSheet
from waggle.network.messages.invite import Invite
from waggle.network.messages.rollout_record import RolloutRecord
from waggle.network.transport.hivemind import dht_validator as guards
from waggle.network.transport.hivemind.lan_discovery import MAX_ADDRESS, MAX_SUGGESTED, LanDiscovery
from waggle.tasks.charter import PROTOCOL, first_swarm
from waggle.tasks.questions import QuestionId, epoch_at
from waggle.tasks.rollout_group import Completion, Group
from waggle.tasks.sandbox.exam import QUESTIONS
from waggle_lab.security.decoders import Decoder
from waggle_lab.security.decoders.swarm_files import NOW, owner

CHARTER = first_swarm()
UNSIGNED = bytes(identities.SIGNATURE_BYTES)
HEADER = struct.Struct("<dBB")  # of an entry to fuzz: expiry, bytes of the key, bytes of the subkey


def announcement(scratch: Path) -> Decoder:
    """Bytes that stand in the directory; also with a true signature, which nobody would find by chance."""
    signer = owner(scratch)
    body = msgspec.msgpack.encode(_announced())

    def check(data: bytes) -> None:
        _refused_or_kept(data)
        _refused_or_kept(data + UNSIGNED)
        signed = data + signer.sign(announcements.DOMAIN, data)
        with contextlib.suppress(BadRecord):
            assert announcements.read(signed, signer.peer_id) == announcements.parse(signed)
        with contextlib.suppress(BadRecord):
            announcements.read(data, data[:38])

    return Decoder((body, body + signer.sign(announcements.DOMAIN, body)), check)


def guard(scratch: Path) -> Decoder:
    """Entries of the DHT: as they come, and with the bytes as a body signed by the one whose place it is."""
    signer = owner(scratch)
    good = _entry(signer, msgspec.msgpack.encode(_announced()))

    def check(data: bytes) -> None:
        watch = guards.AnnouncementValidator(clock=lambda: NOW)
        for entry in (_entry_in(data), replace(good, value=data), _entry(signer, data)):
            if watch.validate(entry):
                announced = announcements.read(_unpacked(entry.value), entry.subkey[2:])
                assert entry.expiration_time == announced.expires_at <= NOW + announcements.MAX_LIFETIME_S
                assert entry.key in directory.places_of(announced.charter, entry.subkey[2:])
                assert watch.validate(entry)

    whole = HEADER.pack(good.expiration_time, len(good.key), len(good.subkey)) + good.key + good.subkey + good.value
    return Decoder((whole, good.value, msgspec.msgpack.encode(_announced())), check)


def gateway(scratch: Path) -> Decoder:
    """What a gateway and its client say to each other."""
    signer = owner(scratch)
    pack, digest = msgspec.msgpack.encode, hashlib.sha256(b"").digest()
    blob = pack(_announced()) + UNSIGNED
    words = (
        gateway_frames.Welcome(PROTOCOL, signer.peer_id, CHARTER.digest, bytes(gateway_frames.NONCE_BYTES), greetings.OURS),
        gateway_frames.Hello(signer.peer_id, b"", UNSIGNED),
        gateway_frames.DirectoryRequest(1),
        gateway_frames.AnnounceRequest(2, blob),
        gateway_frames.UploadRequest(3, b"payload"),
        gateway_frames.PullRequest(4, signer.peer_id, digest),
        gateway_frames.Response(5, b"1", (gateway_frames.DirectoryEntry(signer.peer_id, blob),)),
    )
    decoders = [
        msgspec.msgpack.Decoder(kind)
        for kind in (gateway_frames.Welcome, gateway_frames.Hello, gateway_frames.Request, gateway_frames.Response)
    ]

    def check(data: bytes) -> None:
        for decoder in decoders:
            with contextlib.suppress(*UNREADABLE):
                found = decoder.decode(data)
                assert decoder.decode(pack(found)) == found

    return Decoder(tuple(map(pack, words)), check)


def admission(scratch: Path) -> Decoder:
    """Certificates of a private swarm: as they come, and signed with its key."""
    peer_id, key = owner(scratch).peer_id, bytes(range(32))
    private = msgspec.structs.replace(CHARTER, admission=admissions.public_key_of(key))
    gate = admissions.Membership(private, peer_id, clock=lambda: NOW)
    good = admissions.issue_certificate(key, private.digest, peer_id, NOW + 60)

    def check(data: bytes) -> None:
        assert not gate.admits(peer_id, data) or data == good
        assert not gate.admits(data, good) or data == peer_id
        until = int.from_bytes(data[:6], "big")
        signed = admissions.issue_certificate(key, private.digest, peer_id, until)
        assert gate.admits(peer_id, signed) == (NOW < until <= NOW + admissions.MAX_LIFETIME_S)

    return Decoder((good, int(NOW).to_bytes(6, "big")), check)


def record(scratch: Path) -> Decoder:
    """Blobs of strangers: as they come, and as the inside of a blob, because nobody mutates through a compression."""
    origin = owner(scratch).peer_id
    compressor = zstandard.ZstdCompressor(level=1)

    def check(data: bytes) -> None:
        _check_blob(data, origin)
        _check_blob(compressor.compress(data), origin)

    return Decoder(_blobs(origin), check)


def sheet(scratch: Path) -> Decoder:
    """Answer sheets: as they come, and as the inside of one, truly signed."""
    signer = owner(scratch)
    compressor = zstandard.ZstdCompressor(level=1)

    def check(data: bytes) -> None:
        _check_sheet(data, signer)
        for body in (data, compressor.compress(data)):
            _check_sheet(body + signer.sign(sheets.DOMAIN, body), signer)

    answers = tuple(Completion(text=text, ended=text != "") for text in ("<answer>12</answer>", "é\n", "") * 5)
    own = AnswerSheet(
        origin=signer.peer_id, epoch=epoch_at(NOW), exam=bytes(32), round=7, learned=40, model="starter", answers=answers
    )
    made = sheets.signed(own, CHARTER, signer)
    small = sheets.signed(msgspec.structs.replace(own, answers=answers[:1], model=""), CHARTER, signer)
    inside = (each[: -identities.SIGNATURE_BYTES] for each in (made, small))
    return Decoder((made, small, *map(zstandard.ZstdDecompressor().decompress, inside)), check)


def address(scratch: Path) -> Decoder:
    """Addresses that peers, settings and links name."""
    peer = owner(scratch).peer_id
    text = text_of(peer)

    def check(data: bytes) -> None:
        found = data.decode("utf-8", "surrogateescape")
        try:
            peer_id = addresses.peer_of(found)
        except SwarmError:
            assert not addresses.is_address(found)
            return
        assert addresses.is_address(found)
        assert is_peer_id(peer_id)
        assert found.endswith(f"/p2p/{text_of(peer_id)}")

    places = ("/ip4/192.0.2.1/tcp/4001", "/ip6/2001:db8::1/udp/4001/quic-v1", "/dns4/seed.example.org/tcp/443/wss")
    relayed = f"/ip4/192.0.2.1/tcp/4001/p2p/{text}/p2p-circuit/p2p/{text}"
    return Decoder((*(f"{place}/p2p/{text}".encode() for place in places), relayed.encode()), check)


def invite(scratch: Path) -> Decoder:
    """Links that somebody sent."""
    seed = f"/dns4/seed.example.org/tcp/4001/p2p/{text_of(owner(scratch).peer_id)}"

    def check(data: bytes) -> None:
        try:
            found = invites.read(data.decode("utf-8", "surrogateescape"))
        except SwarmError as refused:
            assert refused.advice
            return
        assert len(found.charter) == 32
        assert len(found.key) in (0, 32)
        assert len(found.seeds) + len(found.gateways) >= 1
        assert len(found.seeds) <= invites.MAX_SEEDS
        assert len(found.gateways) <= invites.MAX_GATEWAYS
        assert all(map(addresses.is_address, found.seeds))
        assert all(map(addresses.is_gateway, found.gateways))
        assert invites.read(invites.write(found)) == found

    plain = invites.write(Invite(charter=CHARTER.digest, seeds=(seed,)))
    private = invites.write(Invite(charter=CHARTER.digest, seeds=(seed, seed.replace("4001", "4002")), key=bytes(range(32))))
    gateways = invites.write(
        Invite(charter=CHARTER.digest, seeds=(), gateways=("wss://a.example.org/gateway", "ws://[2001:db8::1]:80/gateway"))
    )
    return Decoder((plain.encode(), private.encode(), plain.replace("/dns4", "%2Fdns4").encode(), gateways.encode()), check)


def lan(scratch: Path) -> Decoder:
    """What others on the local network say of themselves: an address, a line feed, a charter, and the next of them."""
    own, suggested = owner(scratch), list[str]()
    place = f"/ip4/192.168.1.2/tcp/4001/p2p/{text_of(PEER_ID_PREFIX + bytes(32))}"

    def check(data: bytes) -> None:
        suggested.clear()
        network, lines = LanDiscovery(CHARTER.digest, own.peer_id, suggested.append), data.split(b"\n")
        for told, said in zip(lines[::2], (*lines[1::2], b""), strict=False):
            network.on_service({b"address": told, b"charter": said})
            network.on_service({b"address": told, b"charter": CHARTER.digest.hex().encode()})
        assert len(suggested) == len(set(suggested)) <= MAX_SUGGESTED
        assert all(len(each) <= MAX_ADDRESS and addresses.is_address(each) for each in suggested)
        assert not any(addresses.peer_of(each) == own.peer_id for each in suggested)

    own_place = f"/ip4/192.168.1.2/tcp/4001/p2p/{text_of(own.peer_id)}"
    said = f"{place}\n{CHARTER.digest.hex()}\n"
    return Decoder((said.encode(), (said + said.replace("4001", "4002")).encode(), own_place.encode()), check)


def greeting(_scratch: Path) -> Decoder:
    """What a peer says of itself, of whatever version it is."""

    def check(data: bytes) -> None:
        with contextlib.suppress(BadRecord):
            said = greetings.read(data)
            assert len(said.charter) == 32
            assert len(said.announced) <= announcements.MAX_BYTES
            assert greetings.refusal(said, CHARTER.digest).isprintable()

    mine = greetings.write(CHARTER.digest, b"announced")
    return Decoder((mine, msgspec.msgpack.encode([PROTOCOL + 1, "2.0", CHARTER.digest, b"", b"", {"more": 1}])), check)


@dataclass(frozen=True)
class _Entry:
    key: bytes
    subkey: bytes
    value: bytes
    expiration_time: float


def _announced() -> Announcement:
    return Announcement(
        charter=CHARTER.digest,
        sha256=hashlib.sha256(b"").digest(),
        size=24_000,
        round=7,
        epoch=epoch_at(NOW),
        specialties=0b101,
        model="starter",
        expires=int(NOW + announcements.LIFETIME_S) * 1000,
    )


def _check_blob(blob: bytes, origin: bytes) -> None:
    """Reads one blob, and holds what is accepted to every limit."""
    try:
        found = records.decode(blob, CHARTER, origin=origin, now=NOW)
    except BadRecord as refused:
        assert 0 < len(refused.title) < 40
        return
    assert found.origin == origin
    assert 1 <= len(found.groups) <= records.MAX_GROUPS
    assert records.is_model_name(found.model)
    records.check_epoch(found.epoch, CHARTER, NOW)
    for group in found.groups:
        assert CHARTER.group_size_min <= len(group.completions) <= CHARTER.group_size_max
        assert 0 <= group.id.index < CHARTER.index_cap
        assert records.shareable(group, CHARTER) is not None
    assert records.decode(records.encode(found, CHARTER), CHARTER, origin=origin, now=NOW) == found


def _check_sheet(blob: bytes, origin: Identity) -> None:
    """Reads one sheet, and holds what is accepted to every limit."""
    try:
        found = sheets.read(blob, CHARTER, origin=origin.peer_id)
    except BadRecord as refused:
        assert 0 < len(refused.title) < 40
        return
    assert found.origin == origin.peer_id
    assert 1 <= len(found.answers) <= QUESTIONS
    assert records.is_model_name(found.model)
    assert all(records.is_sound(each.text, CHARTER) for each in found.answers)
    assert sheets.read(sheets.signed(found, CHARTER, origin), CHARTER, origin=origin.peer_id) == found


def _blobs(origin: bytes) -> tuple[bytes, ...]:
    """A blob as nodes share it and, to be compressed by the check, what is in it."""
    texts = (("<answer>12</answer>", "é\n\0 " * 9), ("<answer>{}</answer>", ""))
    groups = tuple(
        Group(
            origin=origin,
            id=QuestionId(specialty.dataset, epoch_at(NOW), i),
            completions=tuple(Completion(text=text, ended=text != "") for text in texts[i % 2]),
        )
        for i, specialty in enumerate(CHARTER.specialties)
    )
    blob = records.encode(RolloutRecord(origin=origin, round=7, epoch=epoch_at(NOW), model="starter", groups=groups), CHARTER)
    small = records.encode(RolloutRecord(origin=origin, round=7, epoch=epoch_at(NOW), model="", groups=groups[:1]), CHARTER)
    return (blob, small, *(zstandard.ZstdDecompressor().decompress(each) for each in (blob, small)))


def _refused_or_kept(blob: bytes) -> None:
    try:
        found = announcements.parse(blob)
    except BadRecord:  # one of the two ways to answer
        return
    assert len(blob) <= announcements.MAX_BYTES
    assert found.v == PROTOCOL
    assert 1 <= found.size <= records.MAX_BLOB
    assert records.is_model_name(found.model)
    assert announcements.parse(msgspec.msgpack.encode(found) + UNSIGNED) == found


def _entry(signer: Identity, body: bytes) -> _Entry:
    """A body under its signer's own name and place, with the lifetime that it states itself, if it states one."""
    expires = NOW
    with contextlib.suppress(BadRecord):
        expires = announcements.parse(body + UNSIGNED).expires_at
    key = min(directory.places_of(CHARTER.digest, signer.peer_id))
    value = msgspec.msgpack.encode(body + signer.sign(announcements.DOMAIN, body))
    return _Entry(key, msgspec.msgpack.encode(signer.peer_id), value, expires)


def _entry_in(data: bytes) -> _Entry:
    expires, key, subkey = HEADER.unpack(data[: HEADER.size].ljust(HEADER.size, b"\0"))
    rest = data[HEADER.size :]
    return _Entry(rest[:key], rest[key : key + subkey], rest[key + subkey :], expires)


def _unpacked(value: bytes) -> bytes:
    found: bytes = msgspec.msgpack.decode(value, type=bytes)
    return found
