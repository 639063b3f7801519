"""Stored data: every file of the engine is listed, exactly the chosen kinds are removed, and no link is followed."""

import os
from pathlib import Path

import pytest

from waggle.core import paths, stored_data
from waggle.core.stored_data import KINDS

HASH = "0123456789abcdef" * 4
FILES = {
    "identity.key": "identity", "identity.20260309T101500.ab12.key": "identity", "settings.toml": "settings",
    "window.json": "settings", "window.lock": "settings", "frugality.json": "settings", "asked.json": "settings",
    "frugality.json.new": "settings", "seed_port": "settings", "seed_port.new": "settings", "control/engine.sock": "settings",
    "checkpoints/r00000001/model.safetensors": "checkpoints", "checkpoints/journal-r00000001": "checkpoints",
    "album/r00000001.safetensors": "checkpoints", "models/Qwen--x/checkpoints/r00000002/state.json": "checkpoints",
    "models.json": "checkpoints", "prompt_form.json": "checkpoints", "models/Qwen--x/prompt_form.json": "checkpoints",
    "history.sqlite": "history", "history.sqlite-wal": "history", "models/Qwen--x/history.sqlite": "history",
    "events/20261121T201809-145887.jsonl": "record", "events/writing.part": "record", "swarms.json": "swarms",
    f"charters/{HASH}.json": "swarms", f"charters/{HASH}.key": "swarms", "known_peers.json": "swarms",
    f"known_peers/{HASH}.json": "swarms", "standings.damaged": "swarms", f"marks/{HASH}.msgpack": "swarms",
    f"questions/{HASH}.piece": "swarms", "logs/waggle.log": "log", "logs/waggle.log.1": "log",
}  # fmt: skip
RARE = {  # what a kill, damage, Windows or an early version leaves
    "identity.new": "identity", "identity.k3_x9ab2.new": "identity", "control/engine.port": "settings",
    "control/window.pipe": "settings",
    "control/engine.lock": "settings", "control/window.sock": "settings", "control/window-0123456789abcdef.sock": "settings",
    "window-0123456789abcdef.lock": "settings", "window.lock.rmlock": "settings",
    ".doctor": "settings", "settings.new": "settings", "settings.toml.broken": "settings", "settings.toml.broken-2": "settings",
    "models/Qwen--x/checkpoints/model.json": "checkpoints", "checkpoints/model.json": "checkpoints",
    "window.json.new": "settings", "models.new": "checkpoints", "models/Qwen--x/prompt_form.json.new": "checkpoints",
    "checkpoints/damaged-r00000007/state.json": "checkpoints", "checkpoints/damaged-journal-r00000007": "checkpoints",
    "checkpoints/.writing-4711/model.safetensors": "checkpoints", "album/r00000001.safetensors.new": "checkpoints",
    "album/earlier-r00000008.safetensors": "checkpoints",
    "models/0123456789abcdef/album/r00000008.safetensors": "checkpoints", "models/starter/history.damaged-wal": "history",
    "history.damaged": "history", "history.rebuilding": "history", "history.rebuilding-journal": "history",
    "swarms.new": "swarms", "swarms.damaged": "swarms", "swarms.damaged-2": "swarms", "history.damaged-2": "history",
    "known_peers.damaged": "swarms", "known_peers.json.new": "swarms",
    f"known_peers/{HASH}.damaged": "swarms", f"charters/{HASH}.new": "swarms", f"charters/{HASH}.key.new": "swarms",
    f"questions/{HASH}.piece.new": "swarms",
    f"marks/{HASH}.msgpack.new": "swarms", f"marks/{HASH}.damaged": "swarms", "logs/waggle.log.3": "log",
}  # fmt: skip
THEIRS = (
    "thesis.txt", "logs/diary.txt", "charters/readme.md", "photos/a.jpg", "checkpoints/epoch3.pt",
    "checkpoints/r18_imagenet/model.safetensors", "checkpoints/r00000130.bak/state.json", "checkpoints/damaged-fence.jpg",
    "checkpoints/journal-rome", "album/wedding.jpg", "album/r00000001.safetensors.bak", "models/llama/checkpoints/a.bin",
    "models/llama/album/b.jpg", "history.md", "models/llama/history.md", "events/2026.jsonl", "swarms.csv", "standings.xlsx",
    "control/motor.py", "charters/magna.json", "known_peers/friends.json", "marks/school.msgpack", "identity.old.key",
    "questions/mine.csv", "logs/waggle.log.gz", "frugality.jsonl",
)  # fmt: skip


@pytest.fixture
def home(tmp_path):
    for name in FILES:
        _write(tmp_path / "home" / name)
    _write(tmp_path / "cache/models/owner/x/model.safetensors")
    return paths.Home(tmp_path / "home")


def _write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * 100)


@pytest.mark.parametrize(("name", "kind"), [*FILES.items(), *RARE.items()])
def test_every_file_is_of_a_kind(home, tmp_path, name, kind):
    _write(home.root / name)
    every_kind = stored_data.stored_files(home, tmp_path / "none")
    listed = {path.relative_to(home.root).as_posix(): part.kind for part in every_kind for path in part.files}
    assert listed[name] == kind


@pytest.mark.parametrize("name", ["bench/cells.jsonl", "churn.jsonl", "fuzz/x/1", "lab/starter/config.json", "shapes/x"])
def test_what_the_laboratory_keeps_is_the_cache(tmp_path, name):
    _write(tmp_path / "cache" / name)
    (part,) = stored_data.stored_files(paths.Home(tmp_path / "nowhere"), tmp_path / "cache")
    assert (part.kind, part.files) == ("cache", (tmp_path / "cache" / name,))


def test_sizes_are_added_up_and_what_is_not_there_is_not_listed(home, tmp_path):
    by_kind = {part.kind: part for part in stored_data.stored_files(home, tmp_path / "cache")}
    assert (by_kind["identity"].size, by_kind["checkpoints"].size, by_kind["models"].size) == (200, 700, 100)
    assert "cache" not in by_kind
    assert stored_data.stored_files(paths.Home(tmp_path / "nowhere"), tmp_path / "none") == ()


def test_exactly_what_was_chosen_is_removed(home, tmp_path):
    done = stored_data.remove(home, tmp_path / "cache", ["checkpoints", "log"])
    assert [(part.kind, part.files, part.size, part.spared) for part in done] == [
        ("checkpoints", 7, 700, ()),
        ("log", 2, 200, ()),
    ]
    leftovers = {path.relative_to(home.root).as_posix() for path in home.root.rglob("*") if path.is_file()}
    assert leftovers == {name for name, kind in FILES.items() if kind not in ("checkpoints", "log")}
    assert (tmp_path / "cache/models/owner/x/model.safetensors").exists()
    assert not (home.root / "logs").exists(), "an empty folder goes too"


def test_choosing_everything_leaves_not_even_the_folders(home, tmp_path):
    stored_data.remove(home, tmp_path / "cache", KINDS)
    assert not home.root.exists()
    assert not (tmp_path / "cache").exists()


def test_what_waggle_did_not_write_is_neither_listed_nor_removed(home, tmp_path):
    mine = [home.root / name for name in THEIRS]
    for path in mine:
        _write(path)
    listed = [path for part in stored_data.stored_files(home, tmp_path / "cache") for path in part.files]
    assert not set(mine) & set(listed)
    stored_data.remove(home, tmp_path / "cache", KINDS)
    assert all(path.exists() for path in mine)


def test_in_a_folder_where_waggle_never_worked_nothing_is_its_own_whatever_it_is_called(tmp_path):
    project = paths.Home(tmp_path / "project")
    names = [name for name in FILES if not name.startswith(("identity", "control"))]
    for name in (*names, "control/motor.py"):
        _write(project.root / name)
    (project.root / "album/to be sorted").mkdir()
    before = sorted(tmp_path.rglob("*"))
    assert stored_data.stored_files(project, tmp_path / "none") == ()
    assert stored_data.remove(project, tmp_path / "none", KINDS) == ()
    assert sorted(tmp_path.rglob("*")) == before


def test_what_was_left_of_a_home_is_found_and_removed_another_time(home, tmp_path):
    stored_data.remove(home, tmp_path / "cache", ["identity", "settings"])
    assert [part.kind for part in stored_data.stored_files(home, tmp_path / "none")] == [
        "checkpoints",
        "history",
        "record",
        "swarms",
        "log",
    ]
    stored_data.remove(home, tmp_path / "cache", KINDS)
    assert not home.root.exists()


@pytest.mark.skipif(os.name == "nt", reason="a link takes rights there")
@pytest.mark.parametrize("place", ["logs", "models/linked", "checkpoints/r00000009", "album/r00000003.safetensors"])
def test_a_link_goes_and_what_it_leads_to_stays(home, tmp_path, place):
    outside = tmp_path / "outside"
    for name in ("waggle.log", "checkpoints/r1/model.safetensors", "history.sqlite"):
        _write(outside / name)
    link = home.root / place
    if link.exists():
        for path in link.iterdir():
            path.unlink()
        link.rmdir()
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(outside)
    size = sum(part.size for part in stored_data.stored_files(home, tmp_path / "cache"))
    assert size < 100 * len(FILES) + 200, "what a link leads to is not counted"
    stored_data.remove(home, tmp_path / "cache", KINDS)
    assert sorted(path.name for path in outside.rglob("*") if path.is_file()) == [
        "history.sqlite", "model.safetensors", "waggle.log",
    ]  # fmt: skip


@pytest.mark.skipif(os.name == "nt", reason="a link takes rights there")
def test_a_home_that_a_person_put_elsewhere_by_a_link_is_found(home, tmp_path):
    (tmp_path / "short").symlink_to(home.root)
    listed = stored_data.stored_files(paths.Home(tmp_path / "short"), tmp_path / "none")
    assert sum(len(part.files) for part in listed) == len(FILES)


@pytest.mark.skipif(os.name == "nt", reason="a link takes rights there")
def test_a_folder_that_became_a_link_after_it_was_listed_is_named_and_the_rest_goes_on(home, tmp_path):
    listed = next(part for part in stored_data.stored_files(home, tmp_path / "cache") if part.kind == "history")
    outside = tmp_path / "outside"
    (home.root / "models/Qwen--x").rename(outside)
    (home.root / "models/Qwen--x").symlink_to(outside)
    done = stored_data._remove(listed, (home.root,))
    assert [(Path(each.path).parts[-2:], each.reason) for each in done.spared] == [
        (("Qwen--x", "history.sqlite"), "a link leads out of Waggle's folder")
    ]
    assert done.files == 2
    assert (outside / "history.sqlite").exists()


def test_a_file_that_cannot_be_removed_is_named_with_the_reason(home, tmp_path):
    (home.root / "logs/waggle.log").unlink()
    (home.root / "logs/waggle.log").mkdir()
    listed = stored_data.StoredFiles(kind="log", files=(home.root / "logs/waggle.log", home.root / "logs/waggle.log.1"), size=100)
    done = stored_data._remove(listed, (home.root,))
    assert [Path(each.path).name for each in done.spared] == ["waggle.log"]
    assert done.spared[0].reason
    assert not (home.root / "logs/waggle.log.1").exists()


def test_a_folder_in_a_files_place_is_named_and_left(home, tmp_path):
    (home.root / "settings.toml").unlink()
    (home.root / "settings.toml").mkdir()
    _write(home.root / "settings.toml/inside")
    done = {part.kind: part for part in stored_data.remove(home, tmp_path / "cache", ["settings"])}
    assert (home.root / "settings.toml/inside").exists()
    assert done["settings"].spared == ()


def test_the_lock_of_a_living_window_is_left_to_it(home, tmp_path, monkeypatch):
    """Only the window itself can remove its lock file on Windows."""
    _write(home.root / "window.lock")

    def removed(path):
        if path.name == "window.lock":
            raise PermissionError(13, "Permission denied")
        path.unlink()

    monkeypatch.setattr(stored_data, "_unlink", removed)
    done = {part.kind: part for part in stored_data.remove(home, tmp_path / "cache", ["settings"])}
    assert done["settings"].spared == ()
    assert done["settings"].files
