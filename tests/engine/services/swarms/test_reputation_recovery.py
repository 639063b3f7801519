"""Whom a person muted or blocked stays muted or blocked when the reputation file is damaged."""

import itertools
import os
import shutil

import pytest

from killing import killed_after
from waggle.core import paths
from waggle.core.peer_id import PEER_ID_PREFIX, text_of
from waggle.engine.services.swarms import reputation_recovery
from waggle.network.limits import reputation_file
from waggle.protocol import events, json_lines
from waggle.protocol.state import Snapshot, State

BLOCKED, MUTED, FORGIVEN = (PEER_ID_PREFIX + bytes([number]) * 32 for number in (1, 2, 3))


def info(peer: bytes, choice: str) -> events.PeerInfo:
    return events.PeerInfo(id=text_of(peer), name="x", connection="gone", choice=choice)


@pytest.fixture
def home(tmp_path):
    """A home whose record has three choices, one of which was taken back, and a damaged reputation file."""
    own_home = paths.Home(tmp_path / "home").prepare()
    state = State(peers={text_of(BLOCKED): info(BLOCKED, "blocked"), text_of(FORGIVEN): info(FORGIVEN, "blocked")})
    later = [events.PeerChanged(peer=info(FORGIVEN, "")), events.PeerChanged(peer=info(MUTED, "muted"))]
    for hour, content in enumerate(([Snapshot(state=state)], later)):
        path = own_home.events / f"20260101T0{hour}0000-000000.jsonl"
        path.write_bytes(b"".join(map(json_lines.line, content)))
        os.utime(path, (1000.0 + hour, 1000.0 + hour))
    own_home.reputation.write_bytes(b"")
    return own_home


def choices(home):
    return {peer.id: peer.choice for peer in reputation_file.read(home.reputation)}


def test_the_choices_of_the_record_come_back_and_it_is_said_once(home):
    warned = reputation_recovery.recover(home)
    assert warned is not None
    assert "Restored mutes and blocks: 2." in warned.advice
    assert str(home.root / "standings.damaged") in warned.advice
    assert choices(home) == {BLOCKED: "blocked", MUTED: "muted"}
    assert reputation_recovery.recover(home) is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_kill_between_any_two_operations_loses_no_choice(home, tmp_path):
    home.reputation.write_bytes(b"[{]")
    for operations in itertools.count():
        copy = paths.Home(shutil.copytree(home.root, tmp_path / f"copy-{operations}"))
        was_killed = killed_after(operations, lambda copy=copy: reputation_recovery.recover(copy))
        reputation_recovery.recover(copy)
        assert choices(copy) == {BLOCKED: "blocked", MUTED: "muted"}, operations
        assert (copy.root / "standings.damaged").exists(), operations
        if not was_killed:
            break
    assert operations > 3


def test_a_sound_file_and_none_are_left_alone(home):
    home.reputation.write_bytes(b"[]")
    assert reputation_recovery.recover(home) is None
    home.reputation.unlink()
    assert reputation_recovery.recover(home) is None
    assert not home.reputation.exists()
