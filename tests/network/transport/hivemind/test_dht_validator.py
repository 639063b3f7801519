"""What the directory's validator accepts, and that no entry from a stranger makes it raise."""

import contextvars
import hashlib
import itertools
import logging
import math
import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from network.loopback import fresh_identity
from waggle.core.errors import BadRecord
from waggle.core.peer_id import PEER_ID_PREFIX, short_id
from waggle.network.identity.keys import Identity
from waggle.network.identity.member_name import SEALED_BYTES
from waggle.network.limits.address_ranges import RELAYED, owner_of
from waggle.network.limits.rate_limits import Payers
from waggle.network.messages import announcement as announcements
from waggle.network.messages import directory
from waggle.network.messages.announcement import MAX_BITS, MAX_LIFETIME_S, Announcement
from waggle.network.messages.consent import CONSENT_BYTES
from waggle.network.messages.rollout_record import MAX_BLOB
from waggle.network.transport.gateway.server import MAX_CLIENTS
from waggle.network.transport.hivemind import dht_validator as guards
from waggle.network.transport.hivemind.dht_validator import FOREIGN_CAP, SHARD_CAP, AnnouncementValidator
from waggle.network.transport.hivemind.patches import load_hivemind
from waggle.tasks.charter import PROTOCOL
from waggle.tasks.shipped_swarms import first_swarm

CHARTER = first_swarm().digest
NOW = 1_800_000_000.0


@dataclass(frozen=True)
class Entry:
    key: bytes
    subkey: bytes
    value: bytes
    expiration_time: float


def announcement(**changes: object) -> Announcement:
    fields = {"charter": CHARTER, "sha256": bytes(32), "size": 9, "round": 1, "epoch": 5, "specialties": 3, "model": "m"}
    return Announcement(**{**fields, "expires": int((NOW + 300) * 1000), **changes})  # type: ignore[arg-type]


def entry(identity: Identity, **changes: object) -> Entry:
    announced_record = announcement(**changes)
    key = min(directory.places_of(CHARTER, identity.peer_id))
    pack = msgspec.msgpack.encode
    return Entry(key, pack(identity.peer_id), pack(announcements.signed(announced_record, identity)), announced_record.expires_at)


def guard() -> AnnouncementValidator:
    return AnnouncementValidator(CHARTER, clock=lambda: NOW)


def test_a_signed_announcement_in_its_place_is_let_in_again_and_again(identity: Identity) -> None:
    watch = guard()
    assert watch.validate(entry(identity))
    assert watch.validate(entry(identity))


def test_an_announcement_is_small(identity: Identity) -> None:
    size = len(announcements.signed(announcement(round=100_000, size=24_000, model="Qwen2.5-0.5B-Instruct"), identity))
    assert size < 200


def test_what_breaks_a_rule_is_kept_out(identity: Identity, tmp_path) -> None:
    from waggle.network.identity.keys import load_or_create

    good, own = entry(identity), directory.places_of(CHARTER, identity.peer_id).keys()
    others = (load_or_create(tmp_path / f"{number}.key") for number in itertools.count())
    other = next(each for each in others if directory.places_of(CHARTER, each.peer_id).keys() != own)
    pack = msgspec.msgpack.encode
    wrong = {
        "a plain value": replace(good, subkey=pack(None)),
        "a dictionary at once": replace(good, subkey=b""),
        "a foreign subkey": replace(good, subkey=pack(other.peer_id)),
        "a subkey that is text": replace(good, subkey=pack("x" * 38)),
        "a later expiry": replace(good, expiration_time=good.expiration_time + 1),
        "no expiry": replace(good, expiration_time=math.nan),
        "for ever": replace(good, expiration_time=math.inf),
        "far in the future": entry(identity, expires=int((NOW + MAX_LIFETIME_S + 1) * 1000)),
        "another key": replace(good, key=bytes(20)),
        "another swarm's key": replace(good, key=min(directory.places_of(bytes(32), identity.peer_id))),
        "another's shard": replace(
            good,
            key=min(directory.places_of(CHARTER, other.peer_id).keys() - own),
        ),
        "a changed byte": replace(good, value=good.value[:50] + bytes([good.value[50] ^ 1]) + good.value[51:]),
        "a changed signature": replace(good, value=good.value[:-1] + bytes([good.value[-1] ^ 1])),
        "no signature": replace(good, value=pack(b"x")),
        "value that is text": replace(good, value=pack("x" * 200)),
        "a value with something behind it": replace(good, value=good.value + b"\0"),
        "too large": replace(good, value=pack(bytes(1000))),
        "a size beyond the limit": entry(identity, size=1 << 30),
        "a model name that cannot be printed": entry(identity, model="\n"),
        "another protocol": entry(identity, v=PROTOCOL + 1),
    }
    assert [name for name, each in wrong.items() if guard().validate(each)] == []


def test_the_log_says_why_an_entry_was_refused_and_quotes_no_stranger(
    identity: Identity, caplog: pytest.LogCaptureFixture
) -> None:
    good = entry(identity)
    wrong = {
        "it expires too late": replace(good, expiration_time=math.inf),
        "forged announcement": replace(good, value=good.value[:-1] + bytes([good.value[-1] ^ 1])),
        "for another place or time": replace(good, key=bytes(20)),
        "its value is not bytes": replace(good, value=msgspec.msgpack.encode("tell everybody")),
    }
    with caplog.at_level(logging.DEBUG, "waggle"):
        for each in wrong.values():
            assert not guard().validate(each)
        assert not guard().validate(replace(good, subkey=msgspec.msgpack.encode("tell everybody")))
    written = [f"a DHT entry of {short_id(identity.peer_id)} is refused: {reason}" for reason in wrong]
    assert caplog.messages == [*written, "a DHT entry of nobody is refused: its subkey is no peer id"]


def test_having_seen_the_good_one_does_not_let_the_changed_one_in(identity: Identity) -> None:
    watch, good = guard(), entry(identity)
    assert watch.validate(good)
    assert not watch.validate(replace(good, expiration_time=good.expiration_time + 1))
    assert not watch.validate(replace(good, key=bytes(20)))


@given(st.binary(max_size=40), st.binary(max_size=60), st.binary(max_size=600), st.floats())
def test_any_entry_is_let_in_or_not(key: bytes, subkey: bytes, value: bytes, expiration: float) -> None:
    assert not guard().validate(Entry(key, subkey, value, expiration))


@given(st.binary(max_size=600))
def test_any_bytes_are_an_announcement_or_refused(blob: bytes) -> None:
    with pytest.raises(BadRecord):
        announcements.read(blob, bytes(38))


def has_room(watch: AnnouncementValidator, record: Entry) -> bool:
    return watch.validate(record) and watch.has_room(record.key, record.subkey[2:], record.value, record.expiration_time)


def test_a_full_shard_takes_in_nobody_new_until_somebodys_time_is_up(tmp_path: Path) -> None:
    now = NOW
    watch = AnnouncementValidator(CHARTER, clock=lambda: now)
    crowd = [fresh_identity(tmp_path, str(number)) for number in range(SHARD_CAP + 1)]
    key = directory.key_of(CHARTER, 0, 0)

    def announced(identity: Identity, expires_at: float) -> Entry:
        announced_record = announcement(expires=int(expires_at * 1000))
        place = hashlib.sha1(msgspec.msgpack.encode(key)).digest()
        pack = msgspec.msgpack.encode
        return Entry(
            place, pack(identity.peer_id), pack(announcements.signed(announced_record, identity)), announced_record.expires_at
        )

    assert all(has_room(watch, announced(identity, NOW + 100)) for identity in crowd[:-1])
    assert not has_room(watch, announced(crowd[-1], NOW + 100))
    assert watch.validate(announced(crowd[-1], NOW + 100))  # what is only read takes no room
    assert has_room(watch, announced(crowd[0], NOW + 200))  # one that is there may go on
    now = NOW + 150
    assert has_room(watch, announced(crowd[-1], now + 100))


def test_other_charters_share_one_small_room(identity: Identity) -> None:
    watch = guard()
    entered = 0
    for number in range(FOREIGN_CAP + 5):
        other = number.to_bytes(32, "big")
        announced_record = announcement(charter=other)
        place = hashlib.sha1(msgspec.msgpack.encode(directory.key_of(other, 0, 0))).digest()
        pack = msgspec.msgpack.encode
        record = Entry(
            place, pack(identity.peer_id), pack(announcements.signed(announced_record, identity)), announced_record.expires_at
        )
        entered += has_room(watch, record)
    assert entered == FOREIGN_CAP
    assert has_room(watch, entry(identity))


def test_a_crowd_in_the_deep_shards_where_nobody_is_shuts_nobody_out_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guards, "DEPTH_CAP", 5)
    watch = guard()

    def at(identity: Identity, bits: int) -> Entry:
        places = directory.places_of(CHARTER, identity.peer_id)
        return replace(entry(identity), key=next(key for key, depth in places.items() if depth == bits))

    crowd = [fresh_identity(tmp_path, str(number)) for number in range(6)]
    for bits in range(4, directory.MAX_BITS + 1):
        assert [has_room(watch, at(identity, bits)) for identity in crowd] == [True] * 5 + [False]
    assert has_room(watch, at(crowd[-1], 0))
    assert has_room(watch, at(crowd[-1], 1))


def test_who_stores_much_in_one_depth_leaves_the_most_of_it_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "DEPTH_CAP", 16)
    watch = guard()
    place = hashlib.sha1(msgspec.msgpack.encode(directory.key_of(CHARTER, 0, 0))).digest()
    entries = [replace(entry(fresh_identity(tmp_path, str(number))), key=place) for number in range(5)]

    accepted = [len(stored(watch, owner_of(source, b""), entries)) for source in ("one range", "one range", "another")]
    assert accepted == [4, 4, 5], "who is there goes on"


def test_relayed_storers_together_leave_half_of_a_room_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "SHARD_CAP", 24)
    watch, place = guard(), hashlib.sha1(msgspec.msgpack.encode(directory.key_of(CHARTER, 0, 0))).digest()
    remaining = [replace(entry(fresh_identity(tmp_path, str(number))), key=place) for number in range(30)]

    def brings(source: str, who: bytes) -> int:
        done = stored(watch, owner_of(source, who), remaining)
        remaining[:] = [each for each in remaining if each not in done]
        return len(done)

    assert [brings(RELAYED, who) for who in (b"a", b"a", b"b", b"c", b"d", b"e")] == [3, 0, 3, 3, 3, 0]
    assert [brings(*who) for who in (("8.8.4.0/24", b"e"), ("8.8.4.0/24", b"f"), ("", b"g"))] == [6, 0, 6]


@pytest.mark.parametrize("source", [RELAYED, "", "8.8.4.0/24"], ids=["relayed", "at home", "of a range"])
def test_a_gateway_that_comes_back_finds_room_for_all_its_clients_and_then_for_itself(tmp_path: Path, source: str) -> None:
    watch, place = guard(), hashlib.sha1(msgspec.msgpack.encode(directory.key_of(CHARTER, 0, 0))).digest()
    lender = fresh_identity(tmp_path, "lender")
    everybody = [*(fresh_identity(tmp_path, str(number)) for number in range(MAX_CLIENTS)), lender]
    entries = [replace(entry(each), key=place) for each in everybody]
    assert stored(watch, owner_of(source, lender.peer_id), entries) == entries


def stored(watch: AnnouncementValidator, storer: Payers, entries: Sequence[Entry]) -> list[Entry]:
    """The entries for which this storer has room."""
    context = contextvars.copy_context()
    context.run(guards.STORER.set, storer)
    return [each for each in entries if context.run(has_room, watch, each)]


def test_what_nobody_could_use_takes_no_place_here_but_may_in_another_swarm(identity: Identity) -> None:
    watch = AnnouncementValidator(CHARTER, clock=lambda: NOW, useful=lambda announced: announced.epoch < 1000)
    assert watch.validate(entry(identity))
    assert not watch.validate(entry(identity, epoch=1_000_000))
    assert watch.forged == 0, "an honest replica of another version may store it"


def test_a_directory_as_full_as_it_gets_takes_bounded_memory() -> None:
    hivemind = load_hivemind()
    store, until = hivemind.Storage(guard()), time.time() + 300  # hivemind drops by its own clock what has expired
    keys = [Ed25519PrivateKey.from_private_bytes(number.to_bytes(32, "big")) for number in range(200)]
    names = [PEER_ID_PREFIX + key.public_key().public_bytes_raw() for key in keys]
    long = announcement(
        model="\u4e2d" * 32, via=(names[0], names[1]), certificate=bytes(72), sheet=bytes(32),
        consents=(bytes(CONSENT_BYTES),) * 2, name=bytes(SEALED_BYTES), size=MAX_BLOB, round=2**31 - 1, epoch=2**31 - 1,
        specialties=2**64 - 1, depth=MAX_BITS,
    )  # fmt: skip
    blob = msgspec.msgpack.encode(long) + bytes(64)  # storage does not look at the signature
    assert announcements.MAX_BYTES - 40 < len(blob) <= announcements.MAX_BYTES
    tracemalloc.start()
    try:
        for name in names:
            for key in directory.places_of(CHARTER, name):
                store.store_subkey(hivemind.DHTID.from_bytes(key), name, msgspec.msgpack.encode(blob), until)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    entries = sum(len(stored.value.data) for stored in store.data.values())
    assert entries == len(names) * (MAX_BITS + 1)
    most = (MAX_BITS + 1) * guards.DEPTH_CAP + FOREIGN_CAP
    assert most * size / entries < 48 << 20, f"an entry takes {size // entries} bytes"


def test_what_is_remembered_of_entries_beside_them_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "REMEMBERED", 8)
    watch = guard()
    for number in range(20):
        assert watch.validate(entry(fresh_identity(tmp_path, f"name {number}")))
        assert len(watch._verified) <= 8
    directory.places_of.cache_clear()
    tracemalloc.start()
    try:
        for number in range(directory.places_of.cache_parameters()["maxsize"] + 100):  # type: ignore[operator]
            directory.places_of(CHARTER, number.to_bytes(38, "big"))
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        directory.places_of.cache_clear()
    assert size < 10 << 20
