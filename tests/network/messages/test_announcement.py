"""An announcement is small, and peers can read the largest one that a node makes."""

from pathlib import Path

import msgspec
import pytest

from network.loopback import fresh_identity
from waggle.core.errors import BadRecord
from waggle.network.identity.member_name import SEALED_BYTES
from waggle.network.identity.membership import CERTIFICATE_BYTES
from waggle.network.messages import announcement as announcements
from waggle.network.messages import consent, handshake, rollout_record
from waggle.network.messages.announcement import MAX_BITS, MAX_BYTES, Announcement
from waggle.network.messages.faults import Fault


@pytest.mark.parametrize("character", ["a", "\N{CYRILLIC SMALL LETTER ZHE}", "\u6a21", "\N{HONEYBEE}"])
def test_the_largest_announcement_that_a_node_can_make_is_read_by_its_peers(tmp_path: Path, character: str) -> None:
    identity, holder = fresh_identity(tmp_path, "own"), fresh_identity(tmp_path, "holder")
    agreed = consent.give(holder, bytes(32), identity.peer_id, (1 << 50) / 1000)
    largest = Announcement(
        charter=bytes(32), sha256=bytes(32), size=rollout_record.MAX_BLOB, round=(1 << 40) - 1, epoch=(1 << 40) - 1,
        specialties=(1 << 64) - 1, model=rollout_record.model_name(100 * character), expires=(1 << 50) - 1, depth=MAX_BITS,
        via=(holder.peer_id,) * 2, certificate=bytes(CERTIFICATE_BYTES), sheet=bytes(32), consents=(agreed,) * 2,
        name=bytes(SEALED_BYTES),
    )  # fmt: skip
    blob = announcements.signed(largest, identity)
    assert len(blob) <= MAX_BYTES
    assert announcements.read(blob, identity.peer_id) == largest
    direct = announcements.signed(msgspec.structs.replace(largest, via=(), consents=(), name=b""), identity)
    assert len(direct) <= 480, "0.1.0 reads no longer one in a handshake, in which it looks for the version"
    assert handshake.read(handshake.write(bytes(32), blob)).announced == blob


def test_without_a_chosen_name_an_announcement_is_that_of_versions_that_know_none(tmp_path: Path) -> None:
    """They refuse unknown fields, so that a name costs the company of those who cannot read it, and no name costs nothing."""
    identity = fresh_identity(tmp_path, "own")
    plain = Announcement(charter=bytes(32), sha256=bytes(32), size=1, round=1, epoch=1, specialties=1, model="m", expires=1)
    named = msgspec.structs.replace(plain, name=bytes(SEALED_BYTES))
    fields = [len(msgspec.msgpack.decode(announcements.signed(each, identity)[:-64])) for each in (plain, named)]
    assert fields == [len(Announcement.__struct_fields__) - 1, len(Announcement.__struct_fields__)]


@pytest.mark.parametrize("size", [1, 31])
def test_what_names_an_answer_sheet_by_less_than_its_hash_is_refused(tmp_path: Path, size: int) -> None:
    """A gateway would close the connection of a client that asks for it."""
    identity = fresh_identity(tmp_path, "own")
    announced = Announcement(
        charter=bytes(32), sha256=bytes(32), size=1, round=1, epoch=1, specialties=1, model="m", expires=1, sheet=bytes(size)
    )  # fmt: skip
    with pytest.raises(BadRecord, match=Fault.INVALID_SHEET_HASH):
        announcements.read(announcements.signed(announced, identity), identity.peer_id)


def test_the_invisible_letters_of_a_model_name_are_not_read(tmp_path: Path) -> None:
    identity = fresh_identity(tmp_path, "own")
    announced = Announcement(
        charter=bytes(32), sha256=bytes(32), size=1, round=1, epoch=1, specialties=1, model="sta\u3164rter\ufe0f", expires=1
    )  # fmt: skip
    assert announcements.read(announcements.signed(announced, identity), identity.peer_id).model == "starter"


@pytest.mark.parametrize(
    "wrong",
    ["nothing", "of another", "to another", "of another swarm", "until before", "too short", "of one of two"],
)
def test_nobody_is_named_who_did_not_agree(tmp_path: Path, wrong: str) -> None:
    own, holder, other = (fresh_identity(tmp_path, name) for name in ("own", "holder", "other"))
    charter, now = bytes(32), 1_000_000.0
    announced = Announcement(
        charter=charter, sha256=bytes(32), size=1, round=1, epoch=1, specialties=1, model="m", expires=int((now + 300) * 1000),
        via=(holder.peer_id,), consents=(consent.give(holder, charter, own.peer_id, now),),
    )  # fmt: skip
    assert announcements.read(announcements.signed(announced, own), own.peer_id) == announced
    consents: dict[str, tuple[bytes, ...]] = {
        "nothing": (),
        "of another": (consent.give(other, charter, own.peer_id, now),),
        "to another": (consent.give(holder, charter, other.peer_id, now),),
        "of another swarm": (consent.give(holder, b"x" * 32, own.peer_id, now),),
        "until before": (consent.give(holder, charter, own.peer_id, now - consent.LIFETIME_S),),
        "too short": (announced.consents[0][:-1],),
        "of one of two": announced.consents,
    }
    via = announced.via if wrong != "of one of two" else (holder.peer_id, other.peer_id)
    forged = msgspec.structs.replace(announced, consents=consents[wrong], via=via)
    with pytest.raises(BadRecord):
        announcements.read(announcements.signed(forged, own), own.peer_id)
