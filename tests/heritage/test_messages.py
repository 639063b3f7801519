"""Nodes and files of 0.1.0 are understood, and this version says to them what 0.1.0 itself would say."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from heritage import messages as m
from heritage.comparing import holds
from heritage.samples import read_again
from waggle.cli import update
from waggle.network.identity import keys, membership
from waggle.network.identity.membership import Membership
from waggle.network.messages import announcement, answer_sheet, handshake, invite, rollout_record
from waggle.network.messages.gateway_frames import DOMAIN, PROOF, Hello, Request, Response, Welcome
from waggle.network.transport.hivemind.lan_discovery import LanDiscovery
from waggle.tasks import charter as charters

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "0.1.0" / "messages.json").read_text("utf-8"))
MESSAGES: dict[str, str] = RECORDED["messages"]


def recorded(name: str) -> bytes:
    return bytes.fromhex(MESSAGES[name])


@pytest.mark.parametrize("name", RECORDED["samples"])
def test_a_whole_value_of_each_type_is_read(name: str) -> None:
    """All that 0.1.0 wrote is still there when it is written again; in messages between nodes nothing is added either."""
    old = RECORDED["samples"][name]
    assert holds(read_again(name, old), old)


def test_the_same_is_said_in_the_same_bytes() -> None:
    now = m.messages()
    assert {name: now.get(name) for name in MESSAGES} == MESSAGES


def test_what_all_nodes_agree_on_is_the_same() -> None:
    now = json.loads(json.dumps(m.facts()))
    assert {name: now.get(name) for name in RECORDED["facts"]} == RECORDED["facts"]


def test_a_record_is_read() -> None:
    blob = bytes.fromhex(RECORDED["packed"]["record"])
    assert rollout_record.decode(blob, m.PRIVATE, origin=m.ME.peer_id, now=m.NOW) == m.RECORD


def test_a_sheet_is_read_and_its_signature_is_right() -> None:
    blob = bytes.fromhex(RECORDED["packed"]["sheet"])
    read = answer_sheet.read(blob, m.PRIVATE, origin=m.ME.peer_id)
    assert read == m.SHEET
    answer_sheet.require_exam(read, m.EXAM)


def test_announcements_are_read_and_their_signatures_are_right() -> None:
    assert announcement.read(recorded("announcement"), m.ME.peer_id) == m.ANNOUNCED
    private = announcement.read(recorded("announcement in a private swarm"), m.ME.peer_id)
    assert private == m.ANNOUNCED_IN_PRIVATE
    assert Membership(m.PRIVATE, m.OTHER.peer_id, clock=lambda: m.NOW).admits(m.ME.peer_id, private.certificate)


def test_a_greeting_is_read_and_goes_together_with_this_version() -> None:
    read = handshake.read(recorded("greeting"))
    assert (read.version, read.charter) == (m.VERSION, m.PUBLIC.digest)
    assert announcement.read(read.announced, m.ME.peer_id) == m.ANNOUNCED
    assert handshake.refusal(read, m.PUBLIC.digest) == ""


def test_both_sides_of_a_gateway_are_understood() -> None:
    welcome = msgspec.msgpack.decode(recorded("gateway's welcome"), type=Welcome)
    hello = msgspec.msgpack.decode(recorded("client's hello"), type=Hello)
    assert (welcome, hello) == (m.WELCOME, m.HELLO)
    assert keys.verify(hello.peer_id, DOMAIN, welcome.peer_id + welcome.nonce + hello.nonce, hello.signature)
    assert keys.verify(welcome.peer_id, PROOF, hello.signature, recorded("gateway's proof"))
    for number, question in enumerate(m.ASKS):
        assert msgspec.msgpack.decode(recorded(f"client's question {number}"), type=Request) == question
    for number, answer in enumerate(m.ANSWERS):
        assert msgspec.msgpack.decode(recorded(f"gateway's answer {number}"), type=Response) == answer


def test_charters_have_the_same_hash() -> None:
    for name, charter in (("charter of the swarm that ships with Waggle", m.PUBLIC), ("charter of a private swarm", m.PRIVATE)):
        hashed = "hash of the charter that ships with Waggle" if charter is m.PUBLIC else "hash of a private charter"
        digest = bytes.fromhex(RECORDED["facts"][hashed])
        assert charters.decode(MESSAGES[name].encode(), expected=digest) == charter
        assert charter.digest == digest


def test_invites_lead_to_the_same_swarm_with_the_same_key() -> None:
    assert (invite.read(MESSAGES["invite"]), invite.read(MESSAGES["invite to a private swarm"])) == m.INVITES
    membership.require_key(m.PRIVATE, invite.read(MESSAGES["invite to a private swarm"]).key)


def test_a_list_of_versions_is_believed() -> None:
    (release,) = update.read(MESSAGES["updates"].encode(), m.update_key()).releases
    assert (release.version, release.files[0].size) == ("9.8.7", 4)


def test_a_node_on_the_local_network_is_heard_of() -> None:
    suggested: list[str] = []
    lan = LanDiscovery(m.PUBLIC.digest, m.ME.peer_id, suggested.append)
    lan.on_service({b"charter": m.PUBLIC.digest.hex().encode(), b"address": m.SEED.encode()})
    assert suggested == [m.SEED]
