"""Nodes and files of 0.1.0 are understood, and this version says to them what 0.1.0 itself would say."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from heritage import messages as m
from heritage import protocol_2
from heritage.comparing import holds
from heritage.samples import BINARY, read_again
from heritage.schema import FILES
from waggle.cli import update
from waggle.core.errors import BadRecord, CharterError
from waggle.engine.services.swarms import ended_swarms
from waggle.network.identity import keys, membership
from waggle.network.identity.membership import Membership
from waggle.network.messages import announcement, answer_sheet, handshake, invite, rollout_record
from waggle.network.messages.gateway_frames import DOMAIN, PROOF, Hello, Request, Response, Welcome
from waggle.network.transport.hivemind.lan_discovery import LanDiscovery
from waggle.tasks import charter as charters
from waggle.tasks.charter import Charter

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "0.1.0" / "messages.json").read_text("utf-8"))
MESSAGES: dict[str, str] = RECORDED["messages"]
BINARY_FILES = BINARY & FILES.keys()


def recorded(name: str) -> bytes:
    return bytes.fromhex(MESSAGES[name])


@dataclass(frozen=True)
class EarlierCharter:
    """What certificates and keys need to know of the private charter of protocol 1."""

    name: str = m.PRIVATE.name
    digest: bytes = m.EARLIER_PRIVATE
    admission_key: str = m.PRIVATE.admission_key
    is_private: bool = True


@pytest.mark.parametrize("name", sorted(RECORDED["samples"].keys() - protocol_2.TYPES))
def test_a_whole_value_of_each_type_is_read(name: str) -> None:
    """All that 0.1.0 wrote is still there when it is written again; in messages between nodes nothing is added either."""
    old = RECORDED["samples"][name]
    if name in BINARY_FILES:
        assert holds(unpacked(read_again(name, old)), unpacked(old))
    else:
        old = protocol_2.with_real_levels(old)
        assert holds(read_again(name, old), old)


@pytest.mark.parametrize("name", sorted(protocol_2.TYPES))
def test_a_value_of_protocol_1_is_refused(name: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        read_again(name, RECORDED["samples"][name])


def unpacked(packed: str) -> Any:
    return msgspec.msgpack.decode(bytes.fromhex(packed))


def test_the_same_is_said_in_the_same_bytes() -> None:
    now, names = m.messages(), MESSAGES.keys() - protocol_2.MESSAGES
    assert {name: now.get(name) for name in names} == {name: MESSAGES[name] for name in names}
    assert not {name for name in protocol_2.MESSAGES if now[name] == MESSAGES[name]}


def test_what_all_nodes_agree_on_is_the_same() -> None:
    now = json.loads(json.dumps(m.facts()))
    names = RECORDED["facts"].keys() - protocol_2.FACTS
    assert {name: now.get(name) for name in names} == {name: RECORDED["facts"][name] for name in names}
    earlier = RECORDED["facts"]["hash of the charter that ships with Waggle"]
    assert earlier == m.EARLIER_PUBLIC.hex() == ended_swarms.EARLIER_FIRST_SWARM
    assert RECORDED["facts"]["hash of a private charter"] == m.EARLIER_PRIVATE.hex()


def test_a_record_is_refused() -> None:
    blob = bytes.fromhex(RECORDED["packed"]["record"])
    with pytest.raises(BadRecord):
        rollout_record.decode(blob, m.PRIVATE, origin=m.ME.peer_id, now=m.NOW)


def test_a_sheet_is_refused() -> None:
    with pytest.raises(BadRecord):
        answer_sheet.read(bytes.fromhex(RECORDED["packed"]["sheet"]), m.PRIVATE, origin=m.ME.peer_id)


@pytest.mark.parametrize("name", ["announcement", "announcement in a private swarm"])
def test_an_announcement_is_refused(name: str) -> None:
    with pytest.raises(BadRecord):
        announcement.read(recorded(name), m.ME.peer_id)


def test_a_certificate_is_as_valid_as_before() -> None:
    earlier = cast(Charter, EarlierCharter())
    assert Membership(earlier, m.OTHER.peer_id, clock=lambda: m.NOW).admits(m.ME.peer_id, recorded("certificate"))


def test_a_greeting_is_read_and_says_who_must_update() -> None:
    read = handshake.read(recorded("greeting"))
    assert (read.protocol, read.version, read.charter) == (1, m.VERSION, m.EARLIER_PUBLIC)
    assert (
        handshake.refusal(read, m.PUBLIC.digest) == "runs Waggle 0.1.0, which is older: it must be updated to train with this one"
    )


def test_both_sides_of_a_gateway_are_understood() -> None:
    welcome = msgspec.msgpack.decode(recorded("gateway's welcome"), type=Welcome)
    hello = msgspec.msgpack.decode(recorded("client's hello"), type=Hello)
    assert (welcome, hello) == (msgspec.structs.replace(m.WELCOME, protocol=1), m.HELLO)
    assert "which is older" in handshake.refusal(welcome, m.EARLIER_PRIVATE)
    assert keys.verify(hello.peer_id, DOMAIN, welcome.peer_id + welcome.nonce + hello.nonce, hello.signature)
    assert keys.verify(welcome.peer_id, PROOF, hello.signature, recorded("gateway's proof"))
    for number, question in enumerate(m.ASKS):
        name = f"client's question {number}"
        if name not in protocol_2.MESSAGES:
            assert msgspec.msgpack.decode(recorded(name), type=Request) == question
    for number, answer in enumerate(m.ANSWERS):
        name = f"gateway's answer {number}"
        if name not in protocol_2.MESSAGES:
            assert msgspec.msgpack.decode(recorded(name), type=Response) == answer


@pytest.mark.parametrize(
    ("message", "charter"),
    [("charter of the swarm that ships with Waggle", m.PUBLIC), ("charter of a private swarm", m.PRIVATE)],
)
def test_a_charter_of_protocol_1_has_ended_and_its_name_is_still_read(message: str, charter: Charter, tmp_path: Path) -> None:
    with pytest.raises(CharterError, match=f"^{charter.name} has ended. Its questions had false answers"):
        charters.decode(MESSAGES[message].encode())
    path = tmp_path / "charter.json"
    path.write_text(MESSAGES[message], encoding="utf-8")
    assert charters.ended_name(path) == charter.name


def test_invites_lead_to_the_same_swarm_with_the_same_key() -> None:
    assert (invite.read(MESSAGES["invite"]), invite.read(MESSAGES["invite to a private swarm"])) == m.INVITES
    membership.require_key(cast(Charter, EarlierCharter()), invite.read(MESSAGES["invite to a private swarm"]).key)


def test_a_list_of_versions_is_believed() -> None:
    (release,) = update.read(MESSAGES["updates"].encode(), m.update_key()).releases
    assert (release.version, release.files[0].size) == ("9.8.7", 4)


def test_a_node_on_the_local_network_is_heard_of() -> None:
    suggested: list[str] = []
    lan = LanDiscovery(m.PUBLIC.digest, m.ME.peer_id, suggested.append)
    lan.on_service({b"charter": m.PUBLIC.digest.hex().encode(), b"address": m.SEED.encode()})
    assert suggested == [m.SEED]
