"""Reputations survive a restart, and a damaged file is set aside, not lost."""

from pathlib import Path

import msgspec
import pytest

from network.loopback import Start, fresh_identity
from waggle.network.limits import reputation_file
from waggle.network.limits.reputation import PeerReputation, ReputationTable
from waggle.network.messages.events import PeerChanged, ReputationsLost


def test_what_is_written_is_read(tmp_path: Path) -> None:
    peer_id = fresh_identity(tmp_path, "peer").peer_id
    trust = ReputationTable()
    trust.record_rejection(peer_id, "too long")
    trust.set_choice(peer_id, "muted")
    reputation_file.write(tmp_path / "standings.json", list(trust))
    assert reputation_file.read(tmp_path / "standings.json") == list(trust)


def test_no_file_means_nobody_known(tmp_path: Path) -> None:
    assert reputation_file.read(tmp_path / "standings.json") == []
    assert reputation_file.read(None) == []


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'[{"id": "AA==", "name": 5}]', b"\xff\xfe"])
def test_a_damaged_file_is_set_aside(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "standings.json"
    path.write_bytes(content)
    assert reputation_file.read(path) is None
    assert (tmp_path / "standings.damaged").read_bytes() == content
    assert not path.exists()


def test_names_and_ids_in_the_file_are_not_taken_on_trust(tmp_path: Path) -> None:
    path = tmp_path / "standings.json"
    peer_id = fresh_identity(tmp_path, "peer").peer_id
    path.write_bytes(
        msgspec.json.encode(
            [PeerReputation(id=peer_id, name="\u202eEve", model="sta\u3164rter"), PeerReputation(id=b"no peer", name="x")]
        )
    )
    (result,) = reputation_file.read(path) or []
    assert result.id == peer_id
    assert "\u202e" not in result.name
    assert result.model == "starter"


async def test_a_block_holds_after_a_restart_and_is_told_at_once(start: Start, tmp_path: Path) -> None:
    path, peer_id = tmp_path / "standings.json", fresh_identity(tmp_path, "peer").peer_id
    first = await start("node", reputation_file=path)
    first.node.choose(peer_id, "blocked")
    await first.node.close()

    restarted = await start("node", reputation_file=path)

    news = await restarted.ear.hear(PeerChanged, lambda news: news.peer.id == peer_id)
    assert news.peer.choice == "blocked"
    assert restarted.node._reputations.of(peer_id).blocked


async def test_a_damaged_file_is_told(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "standings.json"
    path.write_text("[")
    node = await start("node", reputation_file=path)
    await node.ear.hear(ReputationsLost)
