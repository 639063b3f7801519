"""Test that what is missed least goes first where the disk is limited, and what is needed never."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from filelock import FileLock

import system_folders
from waggle.core import paths
from waggle.core.settings import ComputerSettings
from waggle.engine.system.disk_limit import DiskLimit, make_room
from waggle.models.storage import hub_cache


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv(system_folders.CACHE, str(tmp_path / "cache"))
    new_home = paths.Home(tmp_path / "home").prepare()
    for name in ("r00000001", "r00000002", "r00000003", "damaged-r00000000"):
        fill(new_home.model.checkpoints / name)
    for age, name in enumerate(("owner/newer", "owner/older")):
        fill(paths.models() / name)
        os.utime(paths.models() / name, (1000 - age, 1000 - age))
    return new_home


def fill(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"x" * 100_000)
    (folder / "config.json").touch()


@pytest.mark.skipif(sys.platform != "linux", reason="the cache is moved as on Linux")
@pytest.mark.parametrize(
    ("cap", "removed"),
    [
        (0.0, []),
        (0.0006, []),
        (0.0005, ["damaged-r00000000"]),
        (0.0004, ["damaged-r00000000", "older"]),
        (0.0003, ["damaged-r00000000", "older", "r00000001"]),
        (0.00001, ["damaged-r00000000", "older", "r00000001", "r00000002"]),
    ],
)
def test_what_is_missed_least_goes_first_and_the_last_good_state_and_the_model_in_use_never(home, cap, removed):
    room = make_room(home, cap, paths.models() / "owner" / "newer")
    assert (room.removed, room.models) == (removed, removed.count("older"))
    assert (room.unmet > cap * 1e9) if cap == 0.00001 else room.unmet == 0, "what stays is said where it is above the limit"
    assert (home.model.checkpoints / "r00000003").exists()
    assert (paths.models() / "owner" / "newer").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="the cache is moved as on Linux")
@pytest.mark.parametrize(
    ("cap", "says"),
    [
        (0.0005, "Waggle removed old saved states to stay under your limit of 0.0005 GB. Removed: damaged-r00000000."),
        (
            0.0004,
            "Waggle removed a downloaded model to stay under your limit of 0.0004 GB. "
            "Removed: damaged-r00000000, older. You can download it again.",
        ),
    ],
)
def test_who_lost_a_model_reads_that_it_can_be_downloaded_again(home, cap, says):
    warnings = []
    limit = DiskLimit(home, lambda: ComputerSettings(disk_gb=cap), paths.models() / "owner" / "newer")
    limit.make_room(SimpleNamespace(publish_soon=warnings.append))
    (warned,) = warnings
    assert f"{warned.title} {warned.advice}" == says


@pytest.mark.skipif(sys.platform != "linux", reason="the cache is moved as on Linux")
def test_a_journal_that_was_set_aside_goes_like_a_state(home):
    (home.model.checkpoints / "damaged-journal-r00000001").write_bytes(b"x" * 100_000)
    removed = make_room(home, 0.00055, paths.models() / "owner" / "newer").removed
    assert removed == ["damaged-journal-r00000001", "damaged-r00000000"]
    assert not (home.model.checkpoints / "damaged-journal-r00000001").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="the cache is moved as on Linux")
@pytest.mark.parametrize("begun", ["owner/.downloading-", ".gguf-0123456789abcdef/.converting-"])
def test_what_came_of_a_model_that_nobody_completes_any_more_goes_before_what_is_whole(home, begun):
    stale, coming = (paths.models() / f"{begun}{name}" for name in ("left", "coming"))
    for folder in (stale, coming):
        fill(folder)
    with FileLock(hub_cache.lock_of(coming)):
        assert make_room(home, 0.0006, paths.models() / "owner" / "newer").removed == [
            "damaged-r00000000",
            "left",
        ]
        assert not stale.exists()
        assert "coming" not in make_room(home, 0.0005, paths.models() / "owner" / "newer").removed
    assert coming.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="the cache is moved as on Linux")
def test_a_model_that_an_engine_of_another_home_uses_stays_however_little_is_allowed(home):
    (paths.models() / "owner" / ".removing-half").mkdir()
    with hub_cache.hold(paths.models() / "owner" / "older"), hub_cache.hold(paths.models() / "owner" / "newer"):
        assert "older" not in make_room(home, 0.00001, paths.models() / "owner" / "newer").removed
    assert sorted(path.name for path in paths.models().glob("*/*")) == ["newer", "older"]
    assert make_room(home, 0.00001, paths.models() / "owner" / "newer").removed == ["older"]


@pytest.mark.skipif(sys.platform != "linux", reason="the cache is moved as on Linux")
def test_states_of_other_models_count_and_their_newest_stays_too(home):
    other = replace(home, model_root=home.root / "models" / "other")
    for name in ("r00000007", "r00000008"):
        fill(other.model.checkpoints / name)
    assert make_room(home, 0.0005, paths.models() / "owner" / "newer").removed == [
        "damaged-r00000000",
        "older",
        "r00000007",
    ]
    assert make_room(other, 0.00001, paths.models() / "owner" / "newer").removed == ["r00000001", "r00000002"]
    assert {path.name for path in home.root.rglob("r0*")} == {"r00000003", "r00000008"}


@pytest.mark.skipif(sys.platform != "linux", reason="the cache is moved as on Linux")
def test_what_a_person_keeps_beside_saved_states_stays_counts_for_nothing_and_is_no_newest_state(home):
    theirs = ["r18_imagenet", "r50_imagenet", "r00000002.bak", "damaged-fence"]
    for name in theirs:
        fill(home.model.checkpoints / name)
    assert make_room(home, 0.0006, paths.models() / "owner" / "newer").removed == []
    removed = make_room(home, 0.00001, paths.models() / "owner" / "newer").removed
    assert removed == ["damaged-r00000000", "older", "r00000001", "r00000002"]
    assert sorted(path.name for path in home.model.checkpoints.iterdir()) == sorted([*theirs, "r00000003"])
