"""Test that the archive keeps ever fewer snapshots, without a second copy on disk, and no large ones."""

import errno
import os
from pathlib import Path

import pytest

from full_disk import full_beyond
from waggle.engine.services.models.snapshots import ModelSnapshot, _model_with
from waggle.engine.services.playground import MAX_SNAPSHOTS, _pick_evenly
from waggle.engine.storage import snapshot_archive


def play(checkpoints, pictures, number: int) -> None:
    """Save a checkpoint, and remove the one before."""
    for old in checkpoints.glob("r*"):
        (old / "model.safetensors").unlink()
        old.rmdir()
    folder = checkpoints / f"r{number:08d}"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"weights of %d" % number)
    snapshot_archive.archive_newest(checkpoints, pictures)


def test_a_picture_is_kept_each_time_that_twice_as_many_rounds_were_played(tmp_path):
    for number in range(1, 101):
        play(tmp_path / "checkpoints", tmp_path / "album", number)
    assert snapshot_archive.rounds(tmp_path / "album") == [1, 2, 4, 8, 16, 32, 64]
    archived = snapshot_archive.archived_weights(tmp_path / "checkpoints", tmp_path / "album")
    assert [number for number, _ in archived] == [1, 2, 4, 8, 16, 32, 64, 100]
    assert archived[3][1].read_bytes() == b"weights of 8", "though its checkpoint is long gone"


def test_where_there_are_no_links_a_picture_is_kept_whole_or_not_at_all(tmp_path, monkeypatch):
    def refused(_source, _place):
        raise OSError(errno.EPERM, "this disk knows no links")

    monkeypatch.setattr(os, "link", refused)
    play(tmp_path / "checkpoints", tmp_path / "album", 1)
    (tmp_path / "checkpoints/r00000002").mkdir()
    (tmp_path / "checkpoints/r00000002/model.safetensors").write_bytes(b"weights of 2")
    with full_beyond(4):
        snapshot_archive.archive_newest(tmp_path / "checkpoints", tmp_path / "album")
    assert [path.name for path in (tmp_path / "album").iterdir()] == ["r00000001.safetensors"], "no half of a picture"
    snapshot_archive.archive_newest(tmp_path / "checkpoints", tmp_path / "album")
    assert snapshot_archive.archived_weights(tmp_path / "none", tmp_path / "album")[1][1].read_bytes() == b"weights of 2"


def test_pictures_of_rounds_that_are_no_more_give_way_and_are_not_lost(tmp_path):
    for number in range(1, 10):
        play(tmp_path / "checkpoints", tmp_path / "album", number)
    snapshot_archive.set_aside_after(tmp_path / "album", 5)
    assert snapshot_archive.rounds(tmp_path / "album") == [1, 2, 4]
    assert (tmp_path / "album/earlier-r00000008.safetensors").read_bytes() == b"weights of 8"
    play(tmp_path / "checkpoints", tmp_path / "album", 8)
    assert snapshot_archive.rounds(tmp_path / "album") == [1, 2, 4, 8]


def test_a_large_model_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshot_archive, "MAX_BYTES", 4)
    play(tmp_path / "checkpoints", tmp_path / "album", 1)
    assert snapshot_archive.rounds(tmp_path / "album") == []


def test_before_the_first_checkpoint_there_is_nothing(tmp_path):
    assert snapshot_archive.archived_weights(tmp_path, tmp_path / "album") == []


@pytest.mark.parametrize("count", [0, 1, MAX_SNAPSHOTS, MAX_SNAPSHOTS + 1, 40])
def test_a_long_album_is_thinned_with_its_ends_kept(tmp_path, count):
    snapshots = [ModelSnapshot(number, tmp_path) for number in range(count)]
    thinned = _pick_evenly(snapshots, MAX_SNAPSHOTS)
    assert len(thinned) == min(count, MAX_SNAPSHOTS)
    assert thinned[:1] + thinned[-1:] == snapshots[:1] + snapshots[-1:]


def test_a_picture_is_put_beside_the_words_also_where_folders_are_named_from_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("base", "scratch"):
        (tmp_path / name).mkdir()
    (tmp_path / "base/config.json").write_text("words")
    (tmp_path / "r00000001.safetensors").write_bytes(b"weights")
    folder = _model_with(Path("base"), Path("r00000001.safetensors"), tmp_path / "scratch")
    assert (folder / "config.json").read_text() == "words"
    assert (folder / "model.safetensors").read_bytes() == b"weights"
