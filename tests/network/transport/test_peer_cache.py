"""The file of peer addresses is a cache: whatever is wrong with it, it is no error."""

from pathlib import Path

import pytest

from network.loopback import fresh_identity
from waggle.core.peer_id import text_of
from waggle.network.transport import peer_cache

A, B, C = (f"/ip4/192.0.2.{number}/tcp/1/p2p/{number}" for number in range(3))


def test_addresses_met_come_back_newest_first(tmp_path: Path) -> None:
    path = tmp_path / "known_peers.json"
    known = peer_cache.update(path, (), [A, B])
    known = peer_cache.update(path, known, [C, A])

    assert known == peer_cache.read(path) == (C, A, B)


def test_only_so_many_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "known_peers.json"
    peer_cache.update(path, (), [f"/ip4/8.{i}.2.1/tcp/1/p2p/{i}" for i in range(200)])
    assert len(peer_cache.read(path)) == peer_cache.MAX_KEPT


def test_a_crowd_of_one_address_range_or_of_one_computer_nearby_gets_a_quarter_of_the_places(tmp_path: Path) -> None:
    path = tmp_path / "known_peers.json"
    honest = [f"/ip4/8.8.{i}.1/tcp/1/p2p/honest{i}" for i in range(32)]
    known = peer_cache.update(path, (), honest)
    for crowd in ("8.9.9.1", "192.168.1.7"):
        known = peer_cache.update(path, known, [f"/ip4/{crowd}/tcp/{port}/p2p/{crowd}:{port}" for port in range(1, 65)])
        assert sum(f"/{crowd}/" in address for address in known) == peer_cache.MAX_KEPT // 4
    assert set(honest) <= set(known)


def test_newcomers_of_many_ranges_push_out_nobody_who_is_trusted(tmp_path: Path) -> None:
    path, friend = tmp_path / "known_peers.json", fresh_identity(tmp_path, "friend").peer_id
    address = f"/ip4/8.8.8.8/tcp/1/p2p/{text_of(friend)}"
    known = peer_cache.update(path, (address,), [f"/ip4/9.9.{i}.1/tcp/1/p2p/{i}" for i in range(100)], {friend})
    assert known[0] == address
    assert len(known) == peer_cache.MAX_KEPT


def test_whoever_moves_often_trusted_or_not_is_kept_where_it_was_last_met_straight_and_through_a_relay(tmp_path: Path) -> None:
    path, friend = tmp_path / "known_peers.json", fresh_identity(tmp_path, "friend").peer_id
    known = peer_cache.update(path, (), [A, B, C])
    for i in range(20):
        for whose in (text_of(friend), "stranger"):
            known = peer_cache.update(path, known, [f"/ip4/9.{i}.8.7/tcp/1/p2p/{whose}"], {friend})
            known = peer_cache.update(path, known, [f"/ip4/8.8.8.8/tcp/1/p2p/r{i}/p2p-circuit/p2p/{whose}"], {friend})
    places = ("/ip4/8.8.8.8/tcp/1/p2p/r19/p2p-circuit", "/ip4/9.19.8.7/tcp/1")
    both = [f"{place}/p2p/{whose}" for whose in (text_of(friend), "stranger") for place in places]
    assert known == peer_cache.read(path) == (*both, A, B, C)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff", b'["' + b"x" * 100_000 + b'"]', b'["\xff"]', b"[" * 5000])
def test_a_damaged_file_is_an_empty_one(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "known_peers.json"
    path.write_bytes(content)
    assert peer_cache.read(path) == ()


def test_without_a_file_addresses_are_kept_in_memory() -> None:
    assert peer_cache.read(None) == ()
    assert peer_cache.update(None, (A,), [B]) == (B, A)


def test_a_folder_that_is_gone_costs_only_the_file(tmp_path: Path) -> None:
    assert peer_cache.update(tmp_path / "gone" / "file.json", (), [A]) == (A,)
