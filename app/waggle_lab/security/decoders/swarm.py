"""The decoders of messages from the network, and of invite links."""

import contextlib
import hashlib
import struct
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import zstandard

from waggle.core.errors import UNREADABLE, BadRecord, SwarmError
from waggle.core.peer_id import PEER_ID_PREFIX, is_peer_id, text_of
from waggle.network.identity import keys, membership
from waggle.network.identity.keys import Identity
from waggle.network.messages import addresses, answer_sheet, directory, gateway_frames, handshake, rollout_record
from waggle.network.messages import announcement as announcements
from waggle.network.messages import invite as invites
from waggle.network.messages.announcement import Announcement
from waggle.network.messages.answer_sheet import AnswerSheet
from waggle.network.messages.invite import Invite
from waggle.network.messages.rollout_record import RolloutRecord
from waggle.network.transport.hivemind import dht_validator
from waggle.network.transport.hivemind.lan_discovery import MAX_ADDRESS, MAX_SUGGESTED, LanDiscovery
from waggle.tasks.charter import PROTOCOL
from waggle.tasks.questions import QuestionId, epoch_at
from waggle.tasks.rollout_group import Completion, Group
from waggle.tasks.sandbox.exam import QUESTIONS
from waggle.tasks.shipped_swarms import first_swarm
from waggle_lab.security.decoders import Decoder
from waggle_lab.security.decoders.swarm_files import NOW, owner

CHARTER = first_swarm()
UNSIGNED = bytes(keys.SIGNATURE_BYTES)
HEADER = struct.Struct("<dBB")  # of a fuzzed entry: expiry, length of the key, length of the subkey


def announcement(scratch: Path) -> Decoder:
    """Announcements in the directory, plain and with a valid signature, which random bytes would not have."""
    signer = owner(scratch)
    body = msgspec.msgpack.encode(_announced())

    def check(data: bytes) -> None:
        _check_announcement(data)
        _check_announcement(data + UNSIGNED)
        signed = data + signer.sign(announcements.DOMAIN, data)
        with contextlib.suppress(BadRecord):
            assert announcements.read(signed, signer.peer_id) == announcements.parse(signed)
        with contextlib.suppress(BadRecord):
            announcements.read(data, data[:38])

    return Decoder((body, body + signer.sign(announcements.DOMAIN, body)), check)


def guard(scratch: Path) -> Decoder:
    """Entries of the DHT, plain and with the bytes as a body that the owner of the key has signed."""
    signer = owner(scratch)
    good = _entry(signer, msgspec.msgpack.encode(_announced()))

    def check(data: bytes) -> None:
        validator = dht_validator.AnnouncementValidator(clock=lambda: NOW)
        for entry in (_entry_in(data), replace(good, value=data), _entry(signer, data)):
            if validator.validate(entry):
                announced = announcements.read(_unpacked(entry.value), entry.subkey[2:])
                assert entry.expiration_time == announced.expires_at <= NOW + announcements.MAX_LIFETIME_S
                assert entry.key in directory.places_of(announced.charter, entry.subkey[2:])
                assert validator.validate(entry)

    entry_bytes = HEADER.pack(good.expiration_time, len(good.key), len(good.subkey)) + good.key + good.subkey + good.value
    return Decoder((entry_bytes, good.value, msgspec.msgpack.encode(_announced())), check)


def gateway(scratch: Path) -> Decoder:
    """Messages between a gateway and its client."""
    signer = owner(scratch)
    pack, digest = msgspec.msgpack.encode, hashlib.sha256(b"").digest()
    blob = pack(_announced()) + UNSIGNED
    messages = (
        gateway_frames.Welcome(PROTOCOL, signer.peer_id, CHARTER.digest, bytes(gateway_frames.NONCE_BYTES), handshake.OURS),
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
        for message_decoder in decoders:
            with contextlib.suppress(*UNREADABLE):
                decoded = message_decoder.decode(data)
                assert message_decoder.decode(pack(decoded)) == decoded

    return Decoder(tuple(map(pack, messages)), check)


def admission(scratch: Path) -> Decoder:
    """Certificates of a private swarm, plain and signed with its key."""
    peer_id, key = owner(scratch).peer_id, bytes(range(32))
    private = msgspec.structs.replace(CHARTER, admission=membership.public_key_of(key))
    gate = membership.Membership(private, peer_id, clock=lambda: NOW)
    good = membership.issue_certificate(key, private.digest, peer_id, NOW + 60)

    def check(data: bytes) -> None:
        assert not gate.admits(peer_id, data) or data == good
        assert not gate.admits(data, good) or data == peer_id
        until = int.from_bytes(data[:6], "big")
        signed = membership.issue_certificate(key, private.digest, peer_id, until)
        assert gate.admits(peer_id, signed) == (NOW < until <= NOW + membership.MAX_LIFETIME_S)

    return Decoder((good, int(NOW).to_bytes(6, "big")), check)


def record(scratch: Path) -> Decoder:
    """Records of peers, plain and as the content of a compressed blob, because mutations do not survive compression."""
    origin = owner(scratch).peer_id
    compressor = zstandard.ZstdCompressor(level=1)

    def check(data: bytes) -> None:
        _check_blob(data, origin)
        _check_blob(compressor.compress(data), origin)

    return Decoder(_blobs(origin), check)


def sheet(scratch: Path) -> Decoder:
    """Answer sheets, plain and as the content of a sheet with a valid signature."""
    signer = owner(scratch)
    compressor = zstandard.ZstdCompressor(level=1)

    def check(data: bytes) -> None:
        _check_sheet(data, signer)
        for body in (data, compressor.compress(data)):
            _check_sheet(body + signer.sign(answer_sheet.DOMAIN, body), signer)

    answers = tuple(Completion(text=text, ended=text != "") for text in ("<answer>12</answer>", "é\n", "") * 5)
    full_sheet = AnswerSheet(
        origin=signer.peer_id, epoch=epoch_at(NOW), exam=bytes(32), round=7, learned=40, model="starter", answers=answers
    )
    signed = answer_sheet.signed(full_sheet, CHARTER, signer)
    small_sheet = answer_sheet.signed(msgspec.structs.replace(full_sheet, answers=answers[:1], model=""), CHARTER, signer)
    inside = (signed_sheet[: -keys.SIGNATURE_BYTES] for signed_sheet in (signed, small_sheet))
    return Decoder((signed, small_sheet, *map(zstandard.ZstdDecompressor().decompress, inside)), check)


def address(scratch: Path) -> Decoder:
    """Addresses from peers, settings and links."""
    peer = owner(scratch).peer_id
    text = text_of(peer)

    def check(data: bytes) -> None:
        candidate = data.decode("utf-8", "surrogateescape")
        try:
            peer_id = addresses.peer_of(candidate)
        except SwarmError:
            assert not addresses.is_address(candidate)
            return
        assert addresses.is_address(candidate)
        assert is_peer_id(peer_id)
        assert candidate.endswith(f"/p2p/{text_of(peer_id)}")

    places = ("/ip4/192.0.2.1/tcp/4001", "/ip6/2001:db8::1/udp/4001/quic-v1", "/dns4/seed.example.org/tcp/443/wss")
    relayed = f"/ip4/192.0.2.1/tcp/4001/p2p/{text}/p2p-circuit/p2p/{text}"
    return Decoder((*(f"{place}/p2p/{text}".encode() for place in places), relayed.encode()), check)


def invite(scratch: Path) -> Decoder:
    """Invite links."""
    seed = f"/dns4/seed.example.org/tcp/4001/p2p/{text_of(owner(scratch).peer_id)}"

    def check(data: bytes) -> None:
        try:
            decoded = invites.read(data.decode("utf-8", "surrogateescape"))
        except SwarmError as refused:
            assert refused.advice
            return
        assert len(decoded.charter) == 32
        assert len(decoded.key) in (0, 32)
        assert len(decoded.seeds) + len(decoded.gateways) >= 1
        assert len(decoded.seeds) <= invites.MAX_SEEDS
        assert len(decoded.gateways) <= invites.MAX_GATEWAYS
        assert all(map(addresses.is_address, decoded.seeds))
        assert all(map(addresses.is_gateway, decoded.gateways))
        assert invites.read(invites.write(decoded)) == decoded

    plain = invites.write(Invite(charter=CHARTER.digest, seeds=(seed,)))
    private = invites.write(Invite(charter=CHARTER.digest, seeds=(seed, seed.replace("4001", "4002")), key=bytes(range(32))))
    gateways = invites.write(
        Invite(charter=CHARTER.digest, seeds=(), gateways=("wss://a.example.org/gateway", "ws://[2001:db8::1]:80/gateway"))
    )
    return Decoder((plain.encode(), private.encode(), plain.replace("/dns4", "%2Fdns4").encode(), gateways.encode()), check)


def lan(scratch: Path) -> Decoder:
    """What hosts on the local network announce: for each a line with its address and a line with its charter."""
    own, suggested = owner(scratch), list[str]()
    place = f"/ip4/192.168.1.2/tcp/4001/p2p/{text_of(PEER_ID_PREFIX + bytes(range(32)))}"

    def check(data: bytes) -> None:
        suggested.clear()
        network, lines = LanDiscovery(CHARTER.digest, own.peer_id, suggested.append), data.split(b"\n")
        for address_line, charter_line in zip(lines[::2], (*lines[1::2], b""), strict=False):
            network.on_service({b"address": address_line, b"charter": charter_line})
            network.on_service({b"address": address_line, b"charter": CHARTER.digest.hex().encode()})
        assert len(suggested) == len(set(suggested)) <= MAX_SUGGESTED
        assert all(len(suggestion) <= MAX_ADDRESS and addresses.is_address(suggestion) for suggestion in suggested)
        assert not any(addresses.peer_of(suggestion) == own.peer_id for suggestion in suggested)

    own_place = f"/ip4/192.168.1.2/tcp/4001/p2p/{text_of(own.peer_id)}"
    host_lines = f"{place}\n{CHARTER.digest.hex()}\n"
    return Decoder((host_lines.encode(), (host_lines + host_lines.replace("4001", "4002")).encode(), own_place.encode()), check)


def greeting(_scratch: Path) -> Decoder:
    """Handshakes of peers of any version."""

    def check(data: bytes) -> None:
        with contextlib.suppress(BadRecord):
            decoded = handshake.read(data)
            assert len(decoded.charter) == 32
            assert len(decoded.announced) <= announcements.MAX_BYTES
            assert handshake.refusal(decoded, CHARTER.digest).isprintable()

    mine = handshake.write(CHARTER.digest, b"announced")
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
    """Read a blob, and check that an accepted one keeps every limit."""
    try:
        decoded = rollout_record.decode(blob, CHARTER, origin=origin, now=NOW)
    except BadRecord as refused:
        assert 0 < len(refused.title) < 40
        return
    assert decoded.origin == origin
    assert 1 <= len(decoded.groups) <= rollout_record.MAX_GROUPS
    assert rollout_record.is_model_name(decoded.model)
    rollout_record.check_epoch(decoded.epoch, CHARTER, NOW)
    for group in decoded.groups:
        assert CHARTER.group_size_min <= len(group.completions) <= CHARTER.group_size_max
        assert 0 <= group.id.number < CHARTER.questions_per_epoch
        assert rollout_record.shareable(group, CHARTER) is not None
    assert rollout_record.decode(rollout_record.encode(decoded, CHARTER), CHARTER, origin=origin, now=NOW) == decoded


def _check_sheet(blob: bytes, origin: Identity) -> None:
    """Read a sheet, and check that an accepted one keeps every limit."""
    try:
        decoded = answer_sheet.read(blob, CHARTER, origin=origin.peer_id)
    except BadRecord as refused:
        assert 0 < len(refused.title) < 40
        return
    assert decoded.origin == origin.peer_id
    assert 1 <= len(decoded.answers) <= QUESTIONS
    assert rollout_record.is_model_name(decoded.model)
    assert all(rollout_record.is_sound(completion.text, CHARTER) for completion in decoded.answers)
    assert answer_sheet.read(answer_sheet.signed(decoded, CHARTER, origin), CHARTER, origin=origin.peer_id) == decoded


def _blobs(origin: bytes) -> tuple[bytes, ...]:
    """Blobs as nodes share them, and their content, which the check compresses."""
    texts = (("<answer>12</answer>", "é\n\0 " * 9), ("<answer>{}</answer>", ""))
    groups = tuple(
        Group(
            origin=origin,
            id=QuestionId(specialty.dataset, epoch_at(NOW), i),
            completions=tuple(Completion(text=text, ended=text != "") for text in texts[i % 2]),
        )
        for i, specialty in enumerate(CHARTER.specialties)
    )
    blob = rollout_record.encode(
        RolloutRecord(origin=origin, round=7, epoch=epoch_at(NOW), model="starter", groups=groups), CHARTER
    )
    small = rollout_record.encode(
        RolloutRecord(origin=origin, round=7, epoch=epoch_at(NOW), model="", groups=groups[:1]), CHARTER
    )
    return (blob, small, *(zstandard.ZstdDecompressor().decompress(packed) for packed in (blob, small)))


def _check_announcement(blob: bytes) -> None:
    try:
        decoded = announcements.parse(blob)
    except BadRecord:  # refused, as documented
        return
    assert len(blob) <= announcements.MAX_BYTES
    assert decoded.v == PROTOCOL
    assert 1 <= decoded.size <= rollout_record.MAX_BLOB
    assert rollout_record.is_model_name(decoded.model)
    assert announcements.parse(msgspec.msgpack.encode(decoded) + UNSIGNED) == decoded


def _entry(signer: Identity, body: bytes) -> _Entry:
    """A signed body under its signer's key, with the expiry that the body states, if it can be read."""
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
    body: bytes = msgspec.msgpack.decode(value, type=bytes)
    return body
