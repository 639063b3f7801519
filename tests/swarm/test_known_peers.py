"""The file of addresses met lately is a cache: nothing wrong with it is ever an error."""

from pathlib import Path

import pytest

from waggle.swarm import known_peers


def test_addresses_met_come_back_newest_first(tmp_path: Path) -> None:
    path = tmp_path / "known_peers.json"
    known = known_peers.keep(path, (), ["/a", "/b"])
    known = known_peers.keep(path, known, ["/c", "/a"])

    assert known == known_peers.read(path) == ("/c", "/a", "/b")


def test_only_so_many_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "known_peers.json"
    known_peers.keep(path, (), [f"/{i}" for i in range(200)])
    assert len(known_peers.read(path)) == known_peers.MAX_KEPT


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff", b'["' + b"x" * 100_000 + b'"]', b'["\xff"]', b"[" * 5000])
def test_a_damaged_file_is_an_empty_one(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "known_peers.json"
    path.write_bytes(content)
    assert known_peers.read(path) == ()


def test_without_a_file_addresses_are_kept_in_memory() -> None:
    assert known_peers.read(None) == ()
    assert known_peers.keep(None, ("/a",), ["/b"]) == ("/b", "/a")


def test_a_folder_that_is_gone_costs_only_the_file(tmp_path: Path) -> None:
    assert known_peers.keep(tmp_path / "gone" / "file.json", (), ["/a"]) == ("/a",)
