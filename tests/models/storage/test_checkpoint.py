"""Checkpoints are restored as they were written; damaged ones are renamed."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from msgspec.structs import replace

from models.tiny_models import make_model
from waggle.core.errors import CheckpointError, MemoryShort
from waggle.models.storage import checkpoint
from waggle.models.storage.checkpoint import CheckpointState, load_newest, save
from waggle.models.torch.policy import TorchPolicy
from waggle.rl.batch import StepParams, TrainingGroup

TWO, ONES = np.array([4, 5], np.int32), np.ones(2, np.float32)


@pytest.fixture
def policy(tmp_path) -> TorchPolicy:
    return TorchPolicy(make_model("llama", tmp_path / "model"))


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    return folder


def state(number: int) -> CheckpointState:
    return CheckpointState(round=number, step=0, epoch=1, charter="c", base="b", completions=64 * number)


def mark(policy: TorchPolicy, value: float) -> None:
    with torch.no_grad():
        next(iter(policy._parameters.values())).fill_(value)


def test_the_newest_checkpoint_is_restored_and_three_are_kept(policy, root):
    for number in range(1, 6):
        mark(policy, number)
        assert save(root, policy, state(number)) > 100_000
    mark(policy, 0)
    saved, aside = load_newest(root, policy, "b")
    assert saved == state(5)
    assert aside == []
    assert next(iter(policy.state()[0].values())).flatten()[0] == 5
    assert sorted(path.name for path in root.iterdir()) == ["r00000003", "r00000004", "r00000005"]


def test_which_commit_was_trained_here_is_known_for_its_own_name_alone(policy, root):
    assert checkpoint.commit_of(root, "bees/tiny") == ""
    save(root, policy, state(1))
    assert checkpoint.commit_of(root, "bees/tiny") == "", "an earlier version did not say it"
    save(root, policy, replace(state(2), hub="bees/tiny@main c0ffee"))
    names = ("bees/tiny", "bees/tiny@main", "bees/other", "")
    assert [checkpoint.commit_of(root, name) for name in names] == ["", "c0ffee", "", ""]


def rewrite(folder: Path, old: bytes, new: bytes) -> None:
    """Change state.json and the checksums with it."""
    state_file, sums = folder / "state.json", folder / "SHA256SUMS"
    before = checkpoint._sum(state_file)
    assert old in state_file.read_bytes()
    state_file.write_bytes(state_file.read_bytes().replace(old, new, 1))
    sums.write_text(sums.read_text().replace(before, checkpoint._sum(state_file)))


def test_what_a_newer_version_added_to_a_state_is_passed_over(policy, root):
    save(root, policy, state(1))
    rewrite(root / "r00000001", b"{", b'{"weather": "fine",')
    saved, aside = load_newest(root, policy, "b")
    assert (saved, aside) == (state(1), [])


def test_a_state_that_finds_no_memory_just_now_is_whole_and_stays_where_it_is(policy, root, monkeypatch):
    save(root, policy, state(1))

    def restore(*_: object) -> None:
        raise MemoryShort("The model ran out of memory.")

    with monkeypatch.context() as short:
        short.setattr(policy, "restore", restore)
        with pytest.raises(MemoryShort):
            load_newest(root, policy, "b")
    assert load_newest(root, policy, "b") == (state(1), [])


@pytest.mark.parametrize("name", ["model.safetensors", "moments.safetensors", "state.json", "SHA256SUMS"])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_a_damaged_checkpoint_is_set_aside_and_the_one_before_is_taken(policy, root, name, damage):
    for number in (1, 2):
        mark(policy, number)
        save(root, policy, state(number))
    path = root / "r00000002" / name
    content = bytearray(path.read_bytes())
    if damage == "remove":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    else:
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    saved, aside = load_newest(root, policy, "b")
    assert saved == state(1)
    assert next(iter(policy.state()[0].values())).flatten()[0] == 1
    assert [damaged.folder.name for damaged in aside] == ["damaged-r00000002"]
    assert aside[0].folder.is_dir()


def test_a_damaged_checkpoint_that_stays_where_it_is_is_named(policy, root):
    for number in (1, 2):
        save(root, policy, state(number))
    (root / "r00000002" / "model.safetensors").write_bytes(b"half")
    (root / "damaged-r00000002").write_bytes(b"stands for what somebody holds open on Windows")
    with pytest.raises(CheckpointError, match="r00000002 is damaged and cannot be set aside"):
        load_newest(root, policy, "b")


def test_a_write_that_was_cut_short_is_not_a_checkpoint(policy, root):
    save(root, policy, state(1))
    (root / ".writing-1").mkdir()
    (root / ".writing-1" / "model.safetensors").write_bytes(b"half")
    assert load_newest(root, policy, "b")[0] == state(1)
    assert not (root / ".writing-1").exists()


def test_nothing_saved_yet_is_no_error(policy, root):
    assert load_newest(root, policy, "b") == (None, [])
    assert load_newest(root / "nowhere", policy, "b") == (None, [])


def test_another_models_checkpoint_is_refused_and_left_alone(policy, root):
    save(root, policy, state(1))
    with pytest.raises(CheckpointError, match="belongs to another model"):
        load_newest(root, policy, "other")
    assert (root / "r00000001" / checkpoint.SUMS).exists()


def test_a_folder_that_cannot_be_written_is_explained_and_what_was_saved_stays(policy, root, tmp_path):
    save(root, policy, state(1))
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="Round 2 could not be saved"):
        save(tmp_path / "file", policy, state(2))
    assert load_newest(root, policy, "b")[0] == state(1)


@pytest.fixture
def narrow(policy):
    """Limit the size of files: weights fit, moments, which are twice as large, do not."""
    resource = pytest.importorskip("resource")
    policy.step([TrainingGroup(TWO, (TWO,), ONES, ONES)], StepParams(learning_rate=0.0))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    longest = sum(array.nbytes for array in policy.state()[0].values()) * 3 // 2
    yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (longest, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_was_half_written_when_the_disk_said_no_takes_no_room(policy, root, narrow):
    save(root, policy, state(1))
    narrow()
    with pytest.raises(CheckpointError, match="Round 2 could not be saved"):
        save(root, policy, state(2))
    assert [path.name for path in root.iterdir()] == ["r00000001"]


def test_a_checkpoint_for_which_there_is_no_room_is_not_begun(policy, root, monkeypatch):
    written = []
    monkeypatch.setattr(checkpoint.weight_files, "save", lambda arrays, path: written.append(path))
    whole = sum(array.nbytes for arrays in policy.state() for array in arrays.values())
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=whole - 1))
    with pytest.raises(CheckpointError, match="No space left"):
        save(root, policy, state(1))
    assert written == []


@pytest.mark.parametrize(("places", "rounds_left"), [(3.7, [3, 4, 5]), (2.0, [4, 5]), (1.9, [1])])
def test_where_the_disk_has_room_for_few_the_oldest_make_way_but_never_the_newest(policy, root, monkeypatch, places, rounds_left):
    """A disk with room for so many states, and a little for what else is written with one."""
    whole = save(root, policy, state(1))
    disk = places * whole + 1000

    def used() -> int:
        return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())

    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=disk - used()))
    for number in range(2, 6):
        if rounds_left == [1]:
            with pytest.raises(CheckpointError, match="No space left"):
                save(root, policy, state(number))
        else:
            save(root, policy, state(number))
            assert used() <= disk
    assert sorted(int(path.name[1:]) for path in root.iterdir()) == rounds_left


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_another_fine_tune_of_the_same_shape_is_another_model(tmp_path, share):
    """Exports of one model begin with the same bytes: adapters do not change its embeddings."""
    folder = make_model("llama", tmp_path / "one", inner=40_000)
    (folder / "tokenizer.json").write_text("{}")
    before = checkpoint.base_of(folder)
    weights = folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[int((len(content) - 1) * share)] ^= 1
    weights.write_bytes(content)
    assert checkpoint.base_of(folder) != before


def test_what_lies_beside_a_model_and_is_not_read_makes_it_no_other(tmp_path):
    folder = make_model("llama", tmp_path / "one")
    (folder / "tokenizer.json").write_text("{}")
    before = checkpoint.base_of(folder)
    (folder / "adapter_model.safetensors").write_bytes(b"of something else")
    (folder / "consolidated.safetensors").symlink_to(tmp_path / "pruned")
    assert checkpoint.base_of(folder) == before


def test_a_state_that_names_its_model_in_the_short_way_is_gone_on_with(policy, root):
    save(root, policy, state(1))
    assert load_newest(root, policy, "b" + 16 * "0")[0] == state(1)
    with pytest.raises(CheckpointError, match="another model"):
        load_newest(root, policy, "c" + 16 * "0")


@pytest.mark.parametrize(("old", "new"), [(b"{", b"{"), (b'"full"', b'"galore"'), (b'"step"', b'"steps"')])
def test_checkpoints_of_a_newer_waggle_are_refused_in_words_and_left_alone(policy, root, old, new):
    for number in (1, 2, 3):
        save(root, policy, state(number))
        rewrite(root / f"r0000000{number}", b'"format": 1', b'"format": 3')
        rewrite(root / f"r0000000{number}", old, new)
    for refused in (lambda: load_newest(root, policy, "b"), lambda: checkpoint.newest(root, "b")):
        with pytest.raises(CheckpointError, match="newer Waggle"):
            refused()
    assert sorted(path.name for path in root.iterdir()) == ["r00000001", "r00000002", "r00000003"]


def test_arrays_with_the_names_of_another_library_are_refused_and_stay(policy, root):
    """Or they would count as damaged, and the training would begin anew."""
    save(root, policy, replace(state(1), library="mlx-lm"))
    policy.library = "transformers"
    with pytest.raises(CheckpointError, match="trained by mlx-lm"):
        load_newest(root, policy, "b")
    assert [path.name for path in root.iterdir()] == ["r00000001"]
    policy.library = "mlx-lm"
    assert load_newest(root, policy, "b")[0].round == 1
