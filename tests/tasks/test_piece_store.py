"""Pieces of files on disk: only those that the charter names, and a damaged one counts as missing."""

from pathlib import Path

from tasks.question_file.questions import packed_sums
from waggle.tasks.new_charter import new_charter
from waggle.tasks.piece_store import PieceStore
from waggle.tasks.shipped_swarms import first_swarm

SUMS, OTHER = packed_sums(), packed_sums(41)
CHARTER = new_charter("Mine", {}, files=[("Sums", SUMS.file)])
BOTH = new_charter("Both", {"bf": ["easy"]}, files=[("Sums", SUMS.file), ("Other", OTHER.file)])
HASH = bytes.fromhex(SUMS.file.pieces[0])


def test_pieces_that_were_stored_are_read_again(tmp_path: Path) -> None:
    store = PieceStore(tmp_path / "questions", CHARTER)
    assert store.missing() == (HASH,)
    assert store.files() == {}
    assert store.add(SUMS.pieces[0])
    assert store.missing() == ()
    assert store.files() == {SUMS.file.dataset: SUMS.pieces}
    assert store.get(HASH) == SUMS.pieces[0]


def test_other_pieces_are_neither_stored_nor_given(tmp_path: Path) -> None:
    assert PieceStore(tmp_path, BOTH).add(OTHER.pieces[0])
    store = PieceStore(tmp_path, CHARTER)
    assert not store.add(OTHER.pieces[0])
    assert not store.add(b"")
    assert store.get(bytes.fromhex(OTHER.file.pieces[0])) == b""
    assert PieceStore(None, CHARTER).missing() == (HASH,)
    assert PieceStore(None, first_swarm()).missing() == ()


def test_a_damaged_piece_counts_as_missing(tmp_path: Path) -> None:
    store = PieceStore(tmp_path, CHARTER)
    store.add(SUMS.pieces[0])
    (file,) = tmp_path.iterdir()
    for content in (SUMS.pieces[0][:-1], SUMS.pieces[0] + b"0", b""):
        file.write_bytes(content)
        assert store.missing() == (HASH,)
        assert store.get(HASH) == b""
        assert store.files() == {}


def test_pieces_of_other_charters_survive_a_removal(tmp_path: Path) -> None:
    store = PieceStore(tmp_path, BOTH)
    assert store.add(SUMS.pieces[0])
    assert store.add(OTHER.pieces[0])
    store.remove([CHARTER])
    assert store.missing() == (bytes.fromhex(OTHER.file.pieces[0]),)
