"""Test that every round is stored, that writing is limited, and that a kill between any two file operations loses nothing."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from killing import killed_after
from waggle.core.errors import CheckpointError, Stopped
from waggle.engine.storage.round_saver import (
    CHECKPOINT_RETRY_SECONDS,
    MAX_REPLAY_SECONDS,
    RecordingPolicy,
    RoundSaver,
    checkpoint_interval,
    replay_interval,
    restore,
)
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.storage import checkpoint, training_journal
from waggle.models.storage.checkpoint import CheckpointState
from waggle.rl.batch import SamplingParams, StepMetrics, StepParams, TrainingGroup

DAY, MEGABYTE = 86_400, 1e6


class Counting:
    """A policy whose weights are the sum of what it learned. `worked` is its clock, which each step advances by `pace`."""

    training = TrainingMode()

    def __init__(self) -> None:
        self.weights, self.steps = np.zeros(3, np.float32), 0
        self.worked, self.pace = 0.0, 0.0

    def sample(self, prompts, uniforms, params):
        return []

    def step(self, batches, params) -> StepMetrics:
        for batch in batches:
            self.weights = self.weights + params.learning_rate * batch.advantage
        self.steps += 1
        self.worked += self.pace
        return StepMetrics(loss=0.0, clip_fraction=0.0, gradient_norm=1.0)

    def state(self):
        return {"w": self.weights}, {"m": self.weights * 2}

    def restore(self, weights, moments, steps) -> None:
        self.weights, self.steps = weights["w"], steps


class Node:
    """A policy that plays and saves rounds, with a clock that tests set. Its replay may be slow."""

    def __init__(self, root: Path, slow: "Slow | None" = None) -> None:
        self.policy, self.now = slow.policy if slow else Counting(), 0.0
        saved, checkpoint_round, self.aside = slow.restore(root) if slow else restore(root, self.policy, self.policy, "b")
        self.round = saved.round if saved else 0
        self.recording_policy = RecordingPolicy(self.policy, lambda: self.policy.worked)
        self.keeper = RoundSaver(
            root, self.policy, self.recording_policy, checkpoint_round, clock=lambda: self.now, restored=saved
        )

    def learn(self, steps: int = 1) -> None:
        self.recording_policy.sample([], np.zeros(0, np.float32), SamplingParams(max_new=1, stops=(0,)))
        for step in range(steps):
            numbers = np.array([self.round, 1 + step, 0.1], np.float32)
            batch = TrainingGroup(prompt=np.zeros(1, np.int32), completions=(), advantage=numbers, weight=numbers)
            self.recording_policy.step([batch], StepParams(learning_rate=0.1 + step))

    def keep(self) -> int:
        self.round += 1
        return self.keeper.save(CheckpointState(round=self.round, step=self.policy.steps, epoch=1, charter="c", base="b"))

    def play(self, steps: int = 1) -> int:
        self.learn(steps)
        return self.keep()


def folders(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if path.name.startswith("r0"))


@pytest.mark.parametrize("size", [0.1 * MEGABYTE, 10 * MEGABYTE, 500 * MEGABYTE, 36_000 * MEGABYTE])
@pytest.mark.parametrize("speed", [20 * MEGABYTE, 2000 * MEGABYTE])
def test_checkpoints_take_little_of_a_day_and_of_the_disk_whatever_their_size(size, speed):
    every = checkpoint_interval(size, size / speed)
    assert DAY / every * size <= 15e9 * 1.001
    assert size / speed <= 0.01 * every * 1.001


def test_rounds_are_kept_in_the_journal_until_a_checkpoint_is_due(tmp_path):
    node = Node(tmp_path)
    for _ in range(4):
        node.play()
    assert folders(tmp_path) == ["r00000001"]
    node.now = DAY
    node.play()
    assert folders(tmp_path) == ["r00000001", "r00000005"]
    node.play()
    restarted = Node(tmp_path)
    assert (restarted.round, restarted.policy.steps) == (6, 6)
    assert np.array_equal(restarted.policy.weights, node.policy.weights)


def test_every_step_of_a_round_is_in_the_journal_and_a_stop_between_two_leaves_neither_behind(tmp_path):
    node = Node(tmp_path)
    for steps in (1, 3, 2):
        node.play(steps)
    weights = node.policy.weights
    node.learn(2)  # of three: then a stop
    node.keeper.flush()
    restarted = Node(tmp_path)
    assert (restarted.round, restarted.policy.steps) == (3, 6)
    assert np.array_equal(restarted.policy.weights, weights)


def test_a_stop_between_two_steps_that_are_learned_again_saves_no_half_of_a_round(tmp_path):
    node = Node(tmp_path)
    for _ in range(4):
        node.play(3)
    assert folders(tmp_path) == ["r00000001"]
    for stop in (7, 9):  # of 3 steps a round: in the third one, and behind it
        slow = Slow(Counting(), 100.0, stops_after=stop)
        with pytest.raises(Stopped):
            slow.restore(tmp_path)
        assert folders(tmp_path) == {7: ["r00000001"], 9: ["r00000001", "r00000003"]}[stop]
    restarted = Node(tmp_path)
    assert (restarted.round, restarted.policy.steps) == (4, 12)
    assert np.array_equal(restarted.policy.weights, node.policy.weights)


@pytest.mark.parametrize("size", [0.1 * MEGABYTE, 500 * MEGABYTE, 36_000 * MEGABYTE])
@pytest.mark.parametrize("speed", [20 * MEGABYTE, 2000 * MEGABYTE])
def test_a_short_replay_wears_no_disk_out_either(size, speed):
    every = replay_interval(size, size / speed)
    assert DAY / every * size <= 150e9 * 1.001
    assert size / speed <= 0.05 * every * 1.001
    assert replay_interval(int(1.6e9), 3.0) < 1.6 * MAX_REPLAY_SECONDS, "a model of 135 million weights, all of them trained"


def test_before_more_than_ten_minutes_of_learning_are_in_the_journal_only_a_checkpoint_follows(tmp_path):
    node = Node(tmp_path)
    node.play()
    node.now = 2 * replay_interval(checkpoint.size(tmp_path), 0.0)  # by the wear of the disk alone, none would be due
    node.policy.pace = MAX_REPLAY_SECONDS / 3
    for number in range(1, 8):
        node.play()
        node.now += 2 * replay_interval(checkpoint.size(tmp_path), 0.0) * (number == 3)
    assert folders(tmp_path) == ["r00000001", "r00000004", "r00000007"]
    killed = Node(tmp_path)
    assert (killed.round, killed.keeper.newest.round, killed.keeper.checkpoint_round) == (8, 8, 7)


def test_however_long_a_replay_would_take_checkpoints_leave_time_between_them(tmp_path):
    node = Node(tmp_path)
    node.policy.pace = 10 * MAX_REPLAY_SECONDS
    for _ in range(5):
        node.play()
    assert folders(tmp_path) == ["r00000001"]


def test_an_orderly_end_leaves_a_checkpoint_of_the_last_round(tmp_path):
    node = Node(tmp_path)
    for _ in range(3):
        node.play()
    node.keeper.flush()
    assert folders(tmp_path) == ["r00000001", "r00000003"]


def test_a_stop_while_a_round_cannot_be_kept_leaves_no_step_of_it_behind(tmp_path):
    node, whole = Node(tmp_path / "stopped"), Node(tmp_path / "whole")
    for _ in range(3):
        node.play()
        whole.play()
    node.learn()  # and the disk takes nothing until the stop
    node.keeper.flush()
    whole.play()
    restarted = Node(tmp_path / "stopped")
    assert (restarted.round, restarted.policy.steps) == (3, 3)
    restarted.play()
    assert np.array_equal(restarted.policy.weights, whole.policy.weights)


def test_what_was_learned_again_after_a_kill_is_in_the_checkpoint_of_the_next_end_though_no_round_followed(tmp_path):
    node = Node(tmp_path)
    for _ in range(4):
        node.play()
    assert folders(tmp_path) == ["r00000001"]
    Node(tmp_path).keeper.flush()
    assert folders(tmp_path) == ["r00000001", "r00000004"]


def test_a_damaged_checkpoint_costs_nothing_as_long_as_the_one_before_is_there(tmp_path):
    node = Node(tmp_path)
    for node.now in (0.0, 1.0, 1.0 * DAY, 1.0 * DAY):
        node.play()
    (tmp_path / "r00000003" / "model.safetensors").write_bytes(b"damaged")
    restarted = Node(tmp_path)
    assert [report.folder.name for report in restarted.aside] == ["damaged-r00000003"]
    assert restarted.round == 4
    assert np.array_equal(restarted.policy.weights, node.policy.weights)
    restarted.play()
    assert Node(tmp_path).round == 5


def is_sound(policy: Counting) -> bool:
    return bool(np.isfinite(policy.weights).all())


def restored(root: Path) -> tuple[CheckpointState | None, list[str], Counting]:
    policy = Counting()
    saved, _, aside = restore(root, policy, policy, "b", is_sound=lambda: is_sound(policy))
    return saved, [report.folder.name for report in aside], policy


def test_a_state_whose_numbers_are_not_finite_gives_way_to_the_one_before(tmp_path):
    node = Node(tmp_path)
    for node.now in (0.0, 1.0, 1.0):
        node.play()
    node.policy.weights = node.policy.weights * np.float32(np.inf)
    for node.now in (1.0 * DAY, 1.0 * DAY):
        node.play()
    assert folders(tmp_path)[-1] == "r00000004"
    saved, aside, policy = restored(tmp_path)
    assert aside[0] == "damaged-r00000004"
    assert (saved.round, is_sound(policy)) == (5, True), "the journal leads past it"


def test_a_journal_that_leads_to_numbers_that_are_not_finite_is_set_aside(tmp_path):
    node = Node(tmp_path)
    node.play()
    node.play()
    node.recording_policy.sample([], np.zeros(0, np.float32), SamplingParams(max_new=1, stops=(0,)))
    numbers = np.full(3, np.nan, np.float32)
    batch = TrainingGroup(prompt=np.zeros(1, np.int32), completions=(), advantage=numbers, weight=numbers)
    node.recording_policy.step([batch], StepParams(learning_rate=0.1))
    node.keep()
    saved, aside, policy = restored(tmp_path)
    assert (saved.round, policy.steps, is_sound(policy)) == (1, 1, True)
    assert aside == ["damaged-journal-r00000001"]
    assert Node(tmp_path).round == 1, "and training goes on from there"


def test_where_every_state_is_unsound_the_next_start_begins_anew(tmp_path):
    node = Node(tmp_path)
    node.policy.weights = np.full(3, np.nan, np.float32)
    node.play()
    with pytest.raises(CheckpointError, match="no numbers"):
        restored(tmp_path)
    saved, aside, policy = restored(tmp_path)
    assert (saved, aside, policy.steps) == (None, [], 0)


def test_where_no_checkpoint_is_whole_nothing_of_the_old_rounds_comes_back(tmp_path):
    node = Node(tmp_path)
    for _ in range(3):
        node.play()
    (tmp_path / "r00000001" / "model.safetensors").write_bytes(b"damaged")
    anew = Node(tmp_path)
    assert (anew.round, anew.policy.steps) == (0, 0)
    assert [report.folder.name for report in anew.aside] == ["damaged-r00000001", "damaged-journal-r00000001"]
    anew.play()
    restarted = Node(tmp_path)
    assert (restarted.round, restarted.policy.steps, restarted.aside) == (1, 1, [])


def test_journals_go_with_the_checkpoints_they_lead_away_from(tmp_path):
    node = Node(tmp_path)
    for day in range(6):
        node.now = float(day * DAY)
        node.play()
        node.play()
    assert folders(tmp_path) == ["r00000007", "r00000009", "r00000011"]
    journals = sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("journal"))
    assert journals == ["journal-r00000007", "journal-r00000009", "journal-r00000011"]


def test_a_round_that_cannot_be_written_can_be_kept_later(tmp_path):
    node = Node(tmp_path)
    node.play()
    (tmp_path / "journal-r00000001").mkdir()
    node.learn()
    with pytest.raises(CheckpointError, match="Round 2 could not be saved"):
        node.keep()
    (tmp_path / "journal-r00000001").rmdir()
    node.round -= 1
    node.keep()
    restarted = Node(tmp_path)
    assert restarted.round == 2
    assert np.array_equal(restarted.policy.weights, node.policy.weights)


def test_a_checkpoint_that_the_disk_refuses_is_said_and_tried_again_while_the_journal_keeps_the_rounds(tmp_path):
    node, refused = Node(tmp_path), []
    node.keeper.on_checkpoint_refused = lambda: refused.append(node.round)
    node.play()
    node.now = 1.0 * DAY
    in_the_way = tmp_path / f".writing-{os.getpid()}"
    in_the_way.write_text("")
    for _ in range(3):
        node.play()
    assert refused == [2], "the disk is left alone for a while"
    assert folders(tmp_path) == ["r00000001"]
    in_the_way.unlink()
    assert Node(tmp_path).round == 4
    node.now += 2 * CHECKPOINT_RETRY_SECONDS
    node.play()
    assert folders(tmp_path) == ["r00000001", "r00000005"]


def test_a_first_checkpoint_that_the_disk_refuses_is_waited_for(tmp_path):
    node = Node(tmp_path)
    in_the_way = tmp_path / f".writing-{os.getpid()}"
    in_the_way.write_text("")
    with pytest.raises(CheckpointError, match="Round 1 could not be saved"):
        node.play()


class Newer(training_journal.JournalEntry, frozen=True, kw_only=True):
    """What a newer version might write."""

    momentum: float = 0.5


def two_rounds_and_one_of_another_version(root: Path) -> None:
    first = Node(root)
    for _ in range(2):
        first.play()
    training_journal.append(root, 1, Newer(saved=CheckpointState(round=3, step=3, epoch=1, charter="c", base="b")))


@pytest.mark.parametrize("seconds", [0.1, 100.0], ids=["soon", "slowly"])
def test_rounds_behind_those_of_another_version_are_not_lost(tmp_path, seconds):
    two_rounds_and_one_of_another_version(tmp_path)
    node = Node(tmp_path, Slow(Counting(), seconds))
    assert (node.round, [report.folder.name for report in node.aside]) == (2, ["damaged-journal-r00000001"])
    node.play()
    restarted = Node(tmp_path)
    assert (restarted.round, restarted.aside) == (3, [])
    assert np.array_equal(restarted.policy.weights, node.policy.weights)


def test_rounds_behind_a_damaged_one_are_set_aside_and_that_is_said(tmp_path):
    node = Node(tmp_path)
    for _ in range(5):
        node.play()
    path = tmp_path / "journal-r00000001"
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 4 + 60] ^= 1  # in the second of four
    path.write_bytes(damaged)
    restarted = Node(tmp_path)
    assert (restarted.round, [report.folder.name for report in restarted.aside]) == (2, ["damaged-journal-r00000001"])
    assert restarted.aside[0].folder.read_bytes() == damaged
    restarted.play()
    last = Node(tmp_path)
    assert (last.round, last.aside) == (3, [])


def test_rounds_behind_lost_ones_are_never_learned_on_top_of_others(tmp_path):
    """Neither at once, nor after as many new rounds."""
    before = Node(tmp_path)
    for before.now in (0.0, 0.0, 0.0, 1.0 * DAY, *[1.0 * DAY] * 4, 2.0 * DAY, *[2.0 * DAY] * 4):
        before.play()
    assert folders(tmp_path) == ["r00000001", "r00000004", "r00000009"]
    shutil.rmtree(tmp_path / "r00000001")  # as it is after one more
    (tmp_path / "r00000009/model.safetensors").write_bytes(b"damaged")
    path = tmp_path / "journal-r00000004"
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1  # in the third of five
    path.write_bytes(damaged)
    node = Node(tmp_path)
    assert (node.round, [report.folder.name for report in node.aside]) == (
        6, ["damaged-r00000009", "damaged-journal-r00000009", "damaged-journal-r00000004"],
    )  # fmt: skip
    node.play()
    assert Node(tmp_path).round == 7, "what is noted behind the damage is read"
    node.keeper.flush()
    assert folders(tmp_path) == ["r00000004", "r00000007"]
    for _ in range(2):
        node.play()
    restarted = Node(tmp_path)
    assert (restarted.round, restarted.aside) == (9, [])
    assert np.array_equal(restarted.policy.weights, node.policy.weights)


def test_where_what_another_version_wrote_finds_no_room_beside_it_stays_and_that_is_said(tmp_path):
    two_rounds_and_one_of_another_version(tmp_path)
    before = (tmp_path / "journal-r00000001").read_bytes()
    (tmp_path / "damaged-journal-r00000001").mkdir()
    with pytest.raises(CheckpointError, match="The journal cannot be mended"):
        Node(tmp_path)
    assert (tmp_path / "journal-r00000001").read_bytes() == before


def test_what_the_journal_led_on_to_says_how_it_was_trained(tmp_path):
    node = Node(tmp_path)
    node.policy.training = TrainingMode("lean")
    node.play()
    node.play()
    assert folders(tmp_path) == ["r00000001"]
    replayed = Counting()
    replayed.training = TrainingMode("lean")
    saved, _, _ = restore(tmp_path, replayed, replayed, "b")
    assert (saved.round, saved.method, saved.optimizer) == (2, "lean", "adafactor")


class Slow:
    """A clock that each of the first steps advances, and a person who stops the engine after some steps."""

    def __init__(self, policy: Counting, seconds: float, stops_after: int = 1 << 30, quick_after: int = 1 << 30) -> None:
        self.policy, self.now, self.reports = policy, 0.0, []
        self._seconds, self._remaining, self._slow = seconds, stops_after, quick_after

    def step(self, batches, params) -> StepMetrics:
        params.pause_point()
        self.now += self._seconds if self.policy.steps < self._slow else 0.0
        return self.policy.step(batches, params)

    def pause_point(self) -> None:
        if self.policy.steps >= self._remaining:
            raise Stopped

    def restore(self, root: Path):
        return restore(
            root, self.policy, self, "b", pause_point=self.pause_point, report=lambda *how_far: self.reports.append(how_far),
            clock=lambda: self.now,
        )  # fmt: skip


def many_rounds_in_the_journal(root: Path) -> Counting:
    node = Node(root)
    for _ in range(8):
        node.play()
    assert folders(root) == ["r00000001"]
    return node.policy


def test_a_stop_while_rounds_are_learned_again_is_heard_at_once_and_costs_nothing(tmp_path):
    whole = many_rounds_in_the_journal(tmp_path)
    with pytest.raises(Stopped):
        Slow(Counting(), 100.0, stops_after=5).restore(tmp_path)
    assert folders(tmp_path) == ["r00000001", "r00000005"]
    replayed = Slow(Counting(), 0.1)
    saved, checkpoint_round, _ = replayed.restore(tmp_path)
    assert (saved.round, checkpoint_round, replayed.policy.steps) == (8, 5, 8)
    assert np.array_equal(replayed.policy.weights, whole.weights)


def test_a_journal_is_read_once_to_be_mended_and_once_to_be_learned_from(tmp_path, monkeypatch):
    many_rounds_in_the_journal(tmp_path)
    read, parts = [], training_journal._parts
    monkeypatch.setattr(training_journal, "_parts", lambda path: (read.append(part) or part for part in parts(path)))
    assert Slow(Counting(), 0.1).restore(tmp_path)[0].round == 8
    assert len(read) == 2 * 7


def test_how_far_it_is_is_told_where_learning_again_takes_long_and_a_kill_does_not_begin_it_anew(tmp_path):
    many_rounds_in_the_journal(tmp_path)
    quick = Slow(Counting(), 0.1)
    quick.restore(tmp_path)
    assert (quick.reports, folders(tmp_path)) == ([], ["r00000001"])
    slow = Slow(Counting(), 400.0)
    saved, checkpoint_round, _ = slow.restore(tmp_path)
    assert slow.reports == [(done, 7) for done in range(1, 7)]
    assert folders(tmp_path) == ["r00000005", "r00000007", "r00000008"]
    assert (saved.round, checkpoint_round) == (8, 8)
    assert Node(tmp_path).round == 8


def test_a_damaged_checkpoint_costs_nothing_either_where_those_before_were_saved_while_rounds_were_learned_again(tmp_path):
    many_rounds_in_the_journal(tmp_path)
    node = Node(tmp_path, Slow(Counting(), 400.0, quick_after=7))
    assert (node.round, folders(tmp_path)) == (8, ["r00000003", "r00000005", "r00000007"])
    for node.now in (-1.0 * DAY, 1.0 * DAY):
        node.play()
    assert folders(tmp_path) == ["r00000005", "r00000007", "r00000010"]
    (tmp_path / "r00000010" / "model.safetensors").write_bytes(b"damaged")
    restarted = Node(tmp_path)
    assert restarted.round == 10
    assert np.array_equal(restarted.policy.weights, node.policy.weights)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("now", [0.0, 1.0 * DAY], ids=["journal", "checkpoint"])
def test_a_kill_between_any_two_operations_on_files_loses_the_round_in_progress_at_most(tmp_path, now):
    before = Node(tmp_path)
    for day in range(4):  # there is something to be dropped
        before.now = float(day * DAY)
        before.play()
    kills = 0
    while True:
        node = Node(tmp_path)
        lived = node.round
        node.now = now
        if not killed_after(kills, node.play):
            break
        kills += 1
        restarted = Node(tmp_path)
        assert restarted.aside == [], f"at operation {kills}"
        assert restarted.round in (lived, lived + 1)
        expected = [sum(0.1 * number for number in range(restarted.round)), 0.1 * restarted.round]
        assert np.allclose(restarted.policy.weights[:2], expected, rtol=1e-4)
        assert checkpoint.newest(tmp_path, "b")[1].round >= 2
    assert kills >= (1 if now == 0.0 else 12)
    assert Node(tmp_path).round == lived + 1


def test_what_the_first_released_format_wrote_is_still_read(tmp_path):
    shutil.copytree(Path(__file__).parents[2] / "models" / "format_1", tmp_path, dirs_exist_ok=True)
    node = Node(tmp_path)
    assert (node.round, node.policy.steps, node.aside) == (3, 3, [])
    assert np.allclose(node.policy.weights, [0.3, 0.3, 0.03])
    node.play()
    assert Node(tmp_path).round == 4
