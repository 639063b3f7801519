"""The decoders of the swarm room: what the network and invite links bring, and three files."""

import contextlib
import hashlib
import struct
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import zstandard
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from waggle.errors import UNREADABLE, BadRecord, IdentityError, SwarmError
from waggle.lab.decoders import Decoder
from waggle.swarm import address as addresses
from waggle.swarm import admission as admissions
from waggle.swarm import announcement as announcements
from waggle.swarm import directory, marks_kept
from waggle.swarm import gateway as gateways
from waggle.swarm import greeting as greetings
from waggle.swarm import guard as guards
from waggle.swarm import identity as identities
from waggle.swarm import invite as invites
from waggle.swarm import known_peers as met
from waggle.swarm import record as records
from waggle.swarm import sheet as sheets
from waggle.swarm import standings as kept_standings
from waggle.swarm.announcement import Announcement
from waggle.swarm.identity import Identity
from waggle.swarm.invite import Invite
from waggle.swarm.marks import Mark, Marks
from waggle.swarm.record import Record
from waggle.swarm.sheet import Sheet
from waggle.swarm.trust import Trust
from waggle.tasks.charter import PROTOCOL, first_swarm
from waggle.tasks.exam import QUESTIONS
from waggle.tasks.group import Completion, Group
from waggle.tasks.questions import QuestionId, epoch_at

CHARTER = first_swarm()
NOW = 1_800_000_000.0
UNSIGNED = bytes(identities.SIGNATURE_BYTES)
HEADER = struct.Struct("<dBB")  # of an entry to fuzz: expiry, bytes of the key, bytes of the subkey


def announcement(scratch: Path) -> Decoder:
    """Bytes that stand in the directory; also with a true signature, which nobody would find by chance."""
    signer = _signer(scratch)
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
    signer = _signer(scratch)
    good = _entry(signer, msgspec.msgpack.encode(_announced()))

    def check(data: bytes) -> None:
        watch = guards.Guard(clock=lambda: NOW)
        for entry in (_entry_in(data), replace(good, value=data), _entry(signer, data)):
            if watch.validate(entry):
                announced = announcements.read(_unpacked(entry.value), entry.subkey[2:])
                assert entry.expiration_time == announced.expires_at <= NOW + guards.MAX_LIFETIME_S
                assert entry.key in directory.places_of(announced.charter, entry.subkey[2:])
                assert watch.validate(entry)

    whole = HEADER.pack(good.expiration_time, len(good.key), len(good.subkey)) + good.key + good.subkey + good.value
    return Decoder((whole, good.value, msgspec.msgpack.encode(_announced())), check)


def gateway(scratch: Path) -> Decoder:
    """What a gateway and its client say to each other."""
    signer = _signer(scratch)
    pack, digest = msgspec.msgpack.encode, hashlib.sha256(b"").digest()
    blob = pack(_announced()) + UNSIGNED
    words = (
        gateways.Welcome(PROTOCOL, signer.peer_id, CHARTER.digest, bytes(gateways.NONCE_BYTES)),
        gateways.Hello(signer.peer_id, b"", UNSIGNED),
        gateways.Directory(1),
        gateways.Announce(2, blob),
        gateways.Lodge(3, b"payload"),
        gateways.Pull(4, signer.peer_id, digest),
        gateways.Answer(5, b"1", (gateways.Listed(signer.peer_id, blob),)),
    )
    decoders = [msgspec.msgpack.Decoder(kind) for kind in (gateways.Welcome, gateways.Hello, gateways.Ask, gateways.Answer)]

    def check(data: bytes) -> None:
        for decoder in decoders:
            with contextlib.suppress(*UNREADABLE):
                found = decoder.decode(data)
                assert decoder.decode(pack(found)) == found

    return Decoder(tuple(map(pack, words)), check)


def admission(scratch: Path) -> Decoder:
    """Certificates of a private swarm: as they come, and signed with its key."""
    peer_id, key = _signer(scratch).peer_id, bytes(range(32))
    private = msgspec.structs.replace(CHARTER, admission=admissions.public_of(key))
    gate = admissions.Admission(private, peer_id, clock=lambda: NOW)
    good = admissions.issue(key, private.digest, peer_id, NOW + 60)

    def check(data: bytes) -> None:
        assert not gate.admits(peer_id, data) or data == good
        assert not gate.admits(data, good) or data == peer_id
        until = int.from_bytes(data[:6], "big")
        signed = admissions.issue(key, private.digest, peer_id, until)
        assert gate.admits(peer_id, signed) == (NOW < until <= NOW + admissions.MAX_LIFETIME_S)

    return Decoder((good, int(NOW).to_bytes(6, "big")), check)


def record(scratch: Path) -> Decoder:
    """Blobs of strangers: as they come, and as the inside of a blob, because nobody mutates through a compression."""
    origin = _signer(scratch).peer_id
    compressor = zstandard.ZstdCompressor(level=1)

    def check(data: bytes) -> None:
        _check_blob(data, origin)
        _check_blob(compressor.compress(data), origin)

    return Decoder(_blobs(origin), check)


def sheet(scratch: Path) -> Decoder:
    """Answer sheets: as they come, and as the inside of one, truly signed."""
    signer = _signer(scratch)
    compressor = zstandard.ZstdCompressor(level=1)

    def check(data: bytes) -> None:
        _check_sheet(data, signer)
        for body in (data, compressor.compress(data)):
            _check_sheet(body + signer.sign(sheets.DOMAIN, body), signer)

    answers = tuple(Completion(text=text, ended=text != "") for text in ("<answer>12</answer>", "é\n", "") * 5)
    own = Sheet(origin=signer.peer_id, epoch=epoch_at(NOW), exam=bytes(32), round=7, learned=40, model="starter", answers=answers)
    made = sheets.signed(own, CHARTER, signer)
    small = sheets.signed(msgspec.structs.replace(own, answers=answers[:1], model=""), CHARTER, signer)
    inside = (each[: -identities.SIGNATURE_BYTES] for each in (made, small))
    return Decoder((made, small, *map(zstandard.ZstdDecompressor().decompress, inside)), check)


def address(scratch: Path) -> Decoder:
    """Addresses that peers, settings and links name."""
    peer = _signer(scratch).peer_id
    text = identities.text_of(peer)

    def check(data: bytes) -> None:
        found = data.decode("utf-8", "surrogateescape")
        try:
            peer_id = addresses.peer_of(found)
        except SwarmError:
            assert not addresses.is_address(found)
            return
        assert addresses.is_address(found)
        assert identities.is_peer_id(peer_id)
        assert found.endswith(f"/p2p/{identities.text_of(peer_id)}")

    places = ("/ip4/192.0.2.1/tcp/4001", "/ip6/2001:db8::1/udp/4001/quic-v1", "/dns4/seed.example.org/tcp/443/wss")
    relayed = f"/ip4/192.0.2.1/tcp/4001/p2p/{text}/p2p-circuit/p2p/{text}"
    return Decoder((*(f"{place}/p2p/{text}".encode() for place in places), relayed.encode()), check)


def invite(scratch: Path) -> Decoder:
    """Links that somebody sent."""
    seed = f"/dns4/seed.example.org/tcp/4001/p2p/{identities.text_of(_signer(scratch).peer_id)}"

    def check(data: bytes) -> None:
        try:
            found = invites.read(data.decode("utf-8", "surrogateescape"))
        except SwarmError as refused:
            assert refused.advice
            return
        assert len(found.charter) == 32
        assert len(found.key) in (0, 32)
        assert 1 <= len(found.seeds) <= invites.MAX_SEEDS
        assert all(map(addresses.is_address, found.seeds))
        assert invites.read(invites.write(found)) == found

    plain = invites.write(Invite(charter=CHARTER.digest, seeds=(seed,)))
    private = invites.write(Invite(charter=CHARTER.digest, seeds=(seed, seed.replace("4001", "4002")), key=bytes(range(32))))
    return Decoder((plain.encode(), private.encode(), plain.replace("/dns4", "%2Fdns4").encode()), check)


def identity(scratch: Path) -> Decoder:
    """The key file; also with the public half mended, which nobody would find by chance."""
    signer, path = _signer(scratch), scratch / "identity.key"

    def check(data: bytes) -> None:
        for content in (data, _mended(data)):
            path.write_bytes(content)
            try:
                found = identities.load_or_create(path)
            except IdentityError as refused:
                assert refused.advice
                continue
            assert identities.verify(found.peer_id, b"fuzz\0", b"message", found.sign(b"fuzz\0", b"message"))
            assert identities.peer_id_of(identities.text_of(found.peer_id)) == found.peer_id

    return Decoder((signer.path.read_bytes(),), check)


def known_peers(scratch: Path) -> Decoder:
    """The file of addresses met lately: never an error."""
    path = scratch / "known_peers.json"

    def check(data: bytes) -> None:
        path.write_bytes(data)
        known = met.read(path)
        assert len(known) <= met.MAX_KEPT
        kept = met.keep(path, known, ["/ip4/192.0.2.1/tcp/1"])
        assert met.read(path) == kept or len(data) > met.MAX_BYTES // 2

    return Decoder((b"[]", b'["/ip4/192.0.2.1/tcp/4001/p2p/12D3", "/a\\u00e9\\n"]'), check)


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


def standings(scratch: Path) -> Decoder:
    """The file of standings: never an error, and nothing in it is lost."""
    path, trust = scratch / "standings.json", Trust(clock=lambda: NOW)
    signer = _signer(scratch)
    trust.rejected(signer.peer_id, "too long")
    trust.choose(signer.peer_id, "muted")

    def check(data: bytes) -> None:
        path.write_bytes(data)
        known = kept_standings.read(path)
        if known is None:
            assert path.with_suffix(".damaged").read_bytes() == data
            return
        after = Trust(clock=lambda: NOW, known=known)
        after.rejected(signer.peer_id, "malformed")
        kept_standings.write(path, after.all())
        assert kept_standings.read(path) == after.all()

    return Decoder((b"[]", msgspec.json.encode(trust.all())), check)


def marks(scratch: Path) -> Decoder:
    """The file of marks: never an error, and whatever is believed of it can be drawn."""
    path = scratch / "marks.msgpack"
    mark = Mark(origin=_signer(scratch).peer_id, epoch=epoch_at(NOW), round=7, learned=3, model="starter", right=4, total=16)

    def check(data: bytes) -> None:
        path.write_bytes(data)
        known = Marks(ranked=True, clock=lambda: NOW, known=marks_kept.read(path, NOW))
        assert all(point.right <= point.total for curve in known.comparison().curves for point in curve.points)
        marks_kept.write(path, known.newest(marks_kept.MOST))
        assert marks_kept.read(path, NOW) == known.newest(marks_kept.MOST)

    return Decoder((b"\x90", msgspec.msgpack.encode([mark])), check)


@dataclass(frozen=True)
class _Entry:
    key: bytes
    subkey: bytes
    value: bytes
    expiration_time: float


def _signer(scratch: Path) -> Identity:
    """Always the same key, so that a corpus keeps its meaning."""
    path = scratch / "signer.key"
    if not path.exists():
        path.write_bytes(_mended(identities.FILE_PREFIX + bytes(64)))
    return identities.load_or_create(path)


def _mended(content: bytes) -> bytes:
    seed = content[4:36].ljust(32, b"\0")
    public = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return content[:4] + seed + public + content[68:]


def _announced() -> Announcement:
    return Announcement(
        charter=CHARTER.digest,
        sha256=hashlib.sha256(b"").digest(),
        size=24_000,
        round=7,
        epoch=epoch_at(NOW),
        specialties=0b101,
        model="starter",
        expires=int(NOW + guards.LIFETIME_S) * 1000,
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
        found = sheets.read(blob, CHARTER, origin=origin.peer_id, now=NOW)
    except BadRecord as refused:
        assert 0 < len(refused.title) < 40
        return
    assert found.origin == origin.peer_id
    assert 1 <= len(found.answers) <= QUESTIONS
    assert abs(found.epoch - epoch_at(NOW)) <= 1
    assert records.is_model_name(found.model)
    assert all(records.is_sound(each.text, CHARTER) for each in found.answers)
    assert sheets.read(sheets.signed(found, CHARTER, origin), CHARTER, origin=origin.peer_id, now=NOW) == found


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
    blob = records.encode(Record(origin=origin, round=7, epoch=epoch_at(NOW), model="starter", groups=groups), CHARTER)
    small = records.encode(Record(origin=origin, round=7, epoch=epoch_at(NOW), model="", groups=groups[:1]), CHARTER)
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
