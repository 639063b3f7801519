"""The training journal: rounds since the last checkpoint are learned again, bit for bit; an incomplete entry is ignored."""

import hashlib
import os
import sys
from dataclasses import replace

import msgspec
import numpy as np
import pytest
import zstandard

from full_disk import full_beyond
from models.tiny_models import make_model
from waggle.models.storage import training_journal
from waggle.models.storage.checkpoint import CheckpointState
from waggle.models.torch.policy import TorchPolicy
from waggle.rl.batch import StepParams, TrainingGroup
from waggle.rl.objective import Clip


def saved(number: int, base: str = "b") -> CheckpointState:
    return CheckpointState(round=number, step=number, epoch=1, charter="c", base=base)


def batch(number: int) -> TrainingGroup:
    noise = np.random.default_rng(number)
    completions = tuple(noise.integers(5, 30, size).astype(np.int32) for size in (3, 5))
    return TrainingGroup(
        prompt=noise.integers(5, 30, 4).astype(np.int32), completions=completions,
        advantage=noise.normal(size=8).astype(np.float32), weight=np.full(8, 0.1, np.float32),
        old_logp=None if number % 2 else np.full(8, -2.0, np.float32),
    )  # fmt: skip


def entry(number: int, base: str = "b") -> training_journal.JournalEntry:
    return training_journal.entry_of(
        saved(number, base), [([batch(number), batch(number + 100)], StepParams(learning_rate=1e-3))]
    )


def test_learning_again_gives_the_same_weights_and_moments_to_the_bit(tmp_path):
    model = make_model("llama", tmp_path / "model")
    straight, replayed = TorchPolicy(model), TorchPolicy(model)
    for number in (1, 2, 3):
        straight.step([batch(number), batch(number + 100)], StepParams(learning_rate=1e-3))
        training_journal.append(tmp_path, 0, entry(number))
    for lesson in training_journal.entries(tmp_path, 0, "b"):
        training_journal.learn_again(replayed.step, lesson)
    assert replayed.steps == straight.steps == 3
    for mine, theirs in zip(straight.state(), replayed.state(), strict=True):
        assert mine.keys() == theirs.keys()
        assert all(np.array_equal(mine[name], theirs[name]) for name in mine)


def test_a_round_of_several_steps_is_learned_again_to_the_bit(tmp_path):
    """With ratios of whole completions, a value head that is held back, and a learning rate for each step."""
    model = make_model("llama", tmp_path / "model")
    straight, replayed = TorchPolicy(model), TorchPolicy(model)
    noise = np.random.default_rng(0)
    for number in (2, 4):
        steps = []
        for later in range(3):
            old, returns, values = noise.normal(-3.0, 0.3, (3, 8)).astype(np.float32)
            some = [replace(batch(number + later), old_logp=old, returns=returns, values=values)]
            params = StepParams(learning_rate=1e-3 * (1 + later), clip=Clip(0.3, 0.4), ratio="sequence", value_clip=0.2)
            assert straight.step(some, params).applied
            steps.append((some, params))
        training_journal.append(tmp_path, 0, training_journal.entry_of(saved(number // 2), steps))
    for lesson in training_journal.entries(tmp_path, 0, "b"):
        training_journal.learn_again(replayed.step, lesson)
    assert replayed.steps == straight.steps == 6
    for mine, theirs in zip(straight.state(), replayed.state(), strict=True):
        assert mine.keys() == theirs.keys()
        assert all(np.array_equal(mine[name], theirs[name]) for name in mine)


def test_a_journal_from_before_a_round_had_several_steps_is_learned_again(tmp_path):
    """Its entries have one step, whose ratios are those of tokens."""
    now = msgspec.msgpack.decode(msgspec.msgpack.encode(entry(2)))
    before = {name: value for name, value in now.items() if name not in ("ratio", "value_clip", "values", "later_steps")}
    body = zstandard.ZstdCompressor().compress(msgspec.msgpack.encode(before | {"saved": now["saved"] | {"round": 1}}))
    (tmp_path / "journal-r00000000").write_bytes(training_journal.HEAD.pack(len(body), hashlib.sha256(body).digest()) + body)
    steps = []
    for lesson in training_journal.entries(tmp_path, 0, "b"):
        training_journal.learn_again(lambda *step: steps.append(step), lesson)
    ((batches, params),) = steps
    assert params == replace(StepParams(learning_rate=1e-3), pause_point=params.pause_point)
    expected = [batch(2), batch(102)]
    for got, original in zip(batches, expected, strict=True):
        np.testing.assert_array_equal(got.advantage, original.advantage)
        np.testing.assert_array_equal(got.old_logp, original.old_logp)
        assert got.values is None


def rounds(root, after: int, base: str = "b") -> list[int]:
    return [lesson.saved.round for lesson in training_journal.entries(root, after, base)]


class Newer(training_journal.JournalEntry, frozen=True, kw_only=True):
    """An entry of a later version."""

    momentum: float


@pytest.mark.parametrize("room", [0, 1, 40, 200])
def test_what_a_full_disk_tears_off_stands_before_no_later_entry(tmp_path, room):
    size = sum(training_journal.append(tmp_path, 0, entry(number)) for number in (1, 2))
    with full_beyond(size + room), pytest.raises(OSError, match="File too large"):
        training_journal.append(tmp_path, 0, entry(3))
    for number in (3, 4):
        training_journal.append(tmp_path, 0, entry(number))
    assert rounds(tmp_path, 0) == [1, 2, 3, 4]


def test_a_torn_last_entry_is_left_out_and_cut_off_without_a_word_wherever_it_was_torn(tmp_path):
    sizes = [training_journal.append(tmp_path, 0, entry(number)) for number in (1, 2)]
    path = tmp_path / "journal-r00000000"
    whole = path.read_bytes()
    for written in (*range(training_journal.HEAD.size + 10), sizes[1] - 1):
        path.write_bytes(whole[: sizes[0] + written])
        assert rounds(tmp_path, 0) == [1]
        assert training_journal.mend(tmp_path, 0) is None
        assert path.stat().st_size == sizes[0]
    training_journal.append(tmp_path, 0, entry(2))
    assert rounds(tmp_path, 0) == [1, 2]


def test_what_another_version_wrote_is_set_aside_and_nothing_is_lost_behind_it(tmp_path):
    """What was learned behind it was learned from other weights: another future, which is not gone on with."""
    training_journal.append(tmp_path, 0, entry(1))
    for number in (2, 3):
        training_journal.append(tmp_path, 0, Newer(saved=saved(number), momentum=0.5))
    training_journal.append(tmp_path, 0, entry(4))
    path = tmp_path / "journal-r00000000"
    whole = path.read_bytes()
    assert rounds(tmp_path, 0) == [1]
    aside = training_journal.mend(tmp_path, 0)
    assert aside is not None
    assert aside.read_bytes() == whole
    for number in (2, 3):
        training_journal.append(tmp_path, 0, entry(number))
    assert rounds(tmp_path, 0) == [1, 2, 3]
    assert training_journal.mend(tmp_path, 0) is None


@pytest.mark.parametrize("bit", [1, 2, 128])
def test_a_damaged_entry_ends_it_and_what_stands_behind_is_kept_in_a_copy_whichever_byte_it_is(tmp_path, bit):
    sizes = [training_journal.append(tmp_path, 0, entry(number)) for number in (1, 2, 3)]
    path = tmp_path / "journal-r00000000"
    whole = path.read_bytes()
    for place in (*range(training_journal.HEAD.size + 10), sizes[1] - 1):
        content = bytearray(whole)
        content[sizes[0] + place] ^= bit
        path.write_bytes(content)
        assert rounds(tmp_path, 0) == [1]
        aside = training_journal.mend(tmp_path, 0)
        assert aside is not None, f"at byte {place}"
        assert aside.read_bytes() == content
        assert path.read_bytes() == whole[: sizes[0]]
        assert training_journal.mend(tmp_path, 0) is None


def test_journals_lead_from_one_checkpoint_through_the_next(tmp_path):
    for after, numbers in ((0, (1, 2)), (2, (3, 4))):
        for number in numbers:
            training_journal.append(tmp_path, after, entry(number))
    assert rounds(tmp_path, 0) == [1, 2, 3, 4]
    assert rounds(tmp_path, 3) == [4]
    training_journal.forget(tmp_path, 2)
    assert rounds(tmp_path, 0) == []
    assert rounds(tmp_path, 2) == [3, 4]


def test_a_journal_that_cannot_be_removed_yet_hinders_nobody(tmp_path):
    (tmp_path / "journal-r00000000").mkdir()  # stands for one that somebody holds open on Windows
    for after in (1, 2):
        training_journal.append(tmp_path, after, entry(after + 1))
    training_journal.forget(tmp_path, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal-r00000000", "journal-r00000002"]


def test_another_model_learns_nothing_from_it(tmp_path):
    training_journal.append(tmp_path, 0, entry(1, "other"))
    assert rounds(tmp_path, 0) == []


def test_a_round_in_which_nothing_was_learned_counts(tmp_path):
    training_journal.append(tmp_path, 0, training_journal.entry_of(saved(1), ()))
    (lesson,) = training_journal.entries(tmp_path, 0, "b")
    training_journal.learn_again(lambda *_: pytest.fail("nothing was to be learned"), lesson)
    assert lesson.saved == saved(1)


def test_without_a_folder_there_is_nothing(tmp_path):
    assert rounds(tmp_path / "none", 0) == []


@pytest.mark.skipif(sys.platform == "win32", reason="folders are not flushed there")
def test_a_new_journal_is_flushed_with_its_folder_which_holds_its_name(tmp_path, monkeypatch):
    flushed, fsync = list[int](), os.fsync

    def record(file: int) -> None:
        flushed.append(os.fstat(file).st_ino)
        fsync(file)

    monkeypatch.setattr(os, "fsync", record)
    for number in (1, 2):
        training_journal.append(tmp_path, 0, entry(number))
    (file,) = tmp_path.iterdir()
    assert flushed == [file.stat().st_ino, tmp_path.stat().st_ino, file.stat().st_ino]
