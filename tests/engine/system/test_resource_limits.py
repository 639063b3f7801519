"""Test that limits hold, and change while the engine runs."""

import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import torch
from filelock import FileLock

import system_folders
import waggle
from waggle.core import paths
from waggle.core.errors import Stopped
from waggle.core.settings import ComputerSettings
from waggle.engine.control.command_queue import CommandQueue
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.engine.startup import DiskLimit
from waggle.engine.system import resource_limits
from waggle.engine.system.memory_backoff import MAX_PARTS, RECOVERY_SECONDS, MemoryBackoff, was_killed_between
from waggle.models import memory_fit
from waggle.models.backend import open_policy
from waggle.models.storage import hub_cache
from waggle.rl.batch import nothing


class Hours:
    """A clock that each reading advances."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def rests(percent: int, step: float, passes: int) -> list[float]:
    """The seconds that a gate makes its caller rest, when each step takes so long."""
    gate, percentages = PauseGate(nothing, clock=Hours(step)), []
    gate.set_percent(percent)
    gate._condition.wait_for = lambda _ends, seconds: percentages.append(seconds)
    for _ in range(passes):
        gate()
    return percentages


@pytest.mark.parametrize(("percent", "rest"), [(50, 1.0), (25, 3.0), (80, 0.25)])
def test_of_the_time_so_many_percent_are_worked(percent, rest):
    assert rests(percent, 1.0, 5) == pytest.approx([rest] * 4)


def test_all_of_the_time_is_no_rest_and_short_rests_are_saved_up():
    assert rests(100, 1.0, 5) == []
    assert rests(50, 0.004, 10) == pytest.approx([0.012] * 3)


def test_nobody_rests_for_an_hour_after_one_long_step():
    assert rests(50, 3600.0, 2) == [60.0]


def test_of_the_time_neither_a_pause_counts_nor_more_than_a_little_of_a_night_asleep():
    waits, clock = threading.Event(), Hours(0.0)
    gate = PauseGate(waits.set, clock=clock)
    gate()
    clock.now = 5.0
    assert gate.worked_seconds == 5.0
    gate.close()
    passing = threading.Thread(target=gate)
    passing.start()
    assert waits.wait(30)
    clock.now = 1000.0
    assert gate.worked_seconds == 5.0, "also while it lasts"
    gate.open()
    passing.join()
    assert gate.worked_seconds == 5.0
    clock.now += 8 * 3600.0
    assert gate.worked_seconds == 605.0
    gate()
    clock.now += 3.0
    assert gate.worked_seconds == 608.0


def test_neither_a_download_nor_waiting_for_a_disk_counts_as_work():
    clock = Hours(0.0)
    gate = PauseGate(nothing, clock=clock)
    gate.wait_until_open()
    clock.now = 100.0
    assert gate.worked_seconds == 0.0
    gate()
    clock.now = 103.0
    gate.sleep(0.0)
    clock.now = 200.0
    assert gate.worked_seconds == 3.0


def test_more_of_the_time_ends_a_rest_that_less_of_it_owed():
    gate = PauseGate(nothing, clock=Hours(50.0))
    gate.set_percent(5)
    gate()
    working = threading.Thread(target=gate)
    working.start()
    working.join(0.1)
    assert working.is_alive(), "it rests for a quarter of an hour"
    gate.set_percent(100)
    working.join(30)
    assert not working.is_alive()


def test_a_stop_ends_a_rest_at_once():
    gate = PauseGate(nothing, clock=Hours(50.0))
    gate.set_percent(5)
    gate()
    stopped = []

    def work() -> None:
        with pytest.raises(Stopped):
            gate()
        stopped.append(True)

    ended = threading.Thread(target=work)
    ended.start()
    gate.stop()
    ended.join(30)
    assert stopped == [True]


@pytest.mark.skipif(sys.platform == "win32", reason="niceness is unix's")
def test_a_priority_holds_for_every_thread_and_child_and_says_where_it_cannot_go_back_up():
    code = """
import os, subprocess, sys, threading
from waggle.engine.system.resource_limits import set_priority
ends = threading.Event()
other = threading.Thread(target=ends.wait); other.start()
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
lowered = set_priority("lowest")
print(lowered, os.getpriority(os.PRIO_PROCESS, other.native_id), os.getpriority(os.PRIO_PROCESS, child.pid))
print(set_priority("normal") == (os.getpriority(os.PRIO_PROCESS, 0) == 0))
child.communicate(b"x"); ends.set()
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(waggle.__file__).parents[1])}
    outcome = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert outcome.stdout.split() == ["True", "19", "19", "True"]


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="there is but one core")
@pytest.mark.skipif(sys.platform == "win32", reason="niceness is unix's")
def test_a_thread_that_has_just_ended_keeps_no_other_from_its_priority(monkeypatch):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as living:
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        monkeypatch.setattr(resource_limits, "_threads", lambda process: [ended.pid, process.pid])
        assert resource_limits._set_niceness(psutil.Process(living.pid), "lowest")
        assert os.getpriority(os.PRIO_PROCESS, living.pid) == resource_limits.NICENESS["lowest"]
        living.kill()


def test_all_is_kept_before_another_number_of_threads_learns():
    before = torch.get_num_threads()
    opened = open_policy(paths.starter(), device="cpu", threads=1)
    settled: list[int] = []
    limits = resource_limits.ResourceLimits(
        PauseGate(nothing), opened, lambda _: None, lambda: settled.append(torch.get_num_threads())
    )
    limits.computer = ComputerSettings(threads=1)
    limits.before_round()
    assert settled == []
    limits.computer = ComputerSettings(threads=2)
    limits.before_round()
    assert (settled, torch.get_num_threads()) == ([1], 2)
    torch.set_num_threads(before)


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
    room = resource_limits.make_room(home, cap, paths.models() / "owner" / "newer")
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
    removed = resource_limits.make_room(home, 0.00055, paths.models() / "owner" / "newer").removed
    assert removed == ["damaged-journal-r00000001", "damaged-r00000000"]
    assert not (home.model.checkpoints / "damaged-journal-r00000001").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="the cache is moved as on Linux")
@pytest.mark.parametrize("begun", ["owner/.downloading-", ".gguf-0123456789abcdef/.converting-"])
def test_what_came_of_a_model_that_nobody_completes_any_more_goes_before_what_is_whole(home, begun):
    stale, coming = (paths.models() / f"{begun}{name}" for name in ("left", "coming"))
    for folder in (stale, coming):
        fill(folder)
    with FileLock(hub_cache.lock_of(coming)):
        assert resource_limits.make_room(home, 0.0006, paths.models() / "owner" / "newer").removed == [
            "damaged-r00000000",
            "left",
        ]
        assert not stale.exists()
        assert "coming" not in resource_limits.make_room(home, 0.0005, paths.models() / "owner" / "newer").removed
    assert coming.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="the cache is moved as on Linux")
def test_a_model_that_an_engine_of_another_home_uses_stays_however_little_is_allowed(home):
    (paths.models() / "owner" / ".removing-half").mkdir()
    with hub_cache.hold(paths.models() / "owner" / "older"), hub_cache.hold(paths.models() / "owner" / "newer"):
        assert "older" not in resource_limits.make_room(home, 0.00001, paths.models() / "owner" / "newer").removed
    assert sorted(path.name for path in paths.models().glob("*/*")) == ["newer", "older"]
    assert resource_limits.make_room(home, 0.00001, paths.models() / "owner" / "newer").removed == ["older"]


@pytest.mark.skipif(sys.platform != "linux", reason="the cache is moved as on Linux")
def test_states_of_other_models_count_and_their_newest_stays_too(home):
    other = replace(home, model_root=home.root / "models" / "other")
    for name in ("r00000007", "r00000008"):
        fill(other.model.checkpoints / name)
    assert resource_limits.make_room(home, 0.0005, paths.models() / "owner" / "newer").removed == [
        "damaged-r00000000",
        "older",
        "r00000007",
    ]
    assert resource_limits.make_room(other, 0.00001, paths.models() / "owner" / "newer").removed == ["r00000001", "r00000002"]
    assert {path.name for path in home.root.rglob("r0*")} == {"r00000003", "r00000008"}


@pytest.mark.skipif(sys.platform != "linux", reason="the cache is moved as on Linux")
def test_what_a_person_keeps_beside_saved_states_stays_counts_for_nothing_and_is_no_newest_state(home):
    theirs = ["r18_imagenet", "r50_imagenet", "r00000002.bak", "damaged-fence"]
    for name in theirs:
        fill(home.model.checkpoints / name)
    assert resource_limits.make_room(home, 0.0006, paths.models() / "owner" / "newer").removed == []
    removed = resource_limits.make_room(home, 0.00001, paths.models() / "owner" / "newer").removed
    assert removed == ["damaged-r00000000", "older", "r00000001", "r00000002"]
    assert sorted(path.name for path in home.model.checkpoints.iterdir()) == sorted([*theirs, "r00000003"])


def test_an_engine_that_the_system_killed_for_memory_works_in_smaller_parts_next_time(tmp_path):
    home = paths.Home(tmp_path)
    first = MemoryBackoff(home, "boot:3")
    assert (first.was_killed, first.parts) == (False, 1)
    second = MemoryBackoff(home, "boot:4")
    assert (second.was_killed, second.parts) == (True, 2)
    second.mark_orderly_exit()
    third = MemoryBackoff(home, "boot:9")
    assert (third.was_killed, third.parts) == (False, 2), "others were killed after an orderly end"
    assert [third.back_off() for _ in range(4)] == [True, True, True, False]
    assert MemoryBackoff(home, "boot:9").parts == 16


def test_a_kill_after_the_engine_was_told_to_leave_was_for_its_slowness_not_for_memory(tmp_path):
    queue, home = CommandQueue(), paths.Home(tmp_path)
    first = MemoryBackoff(home, "boot:3")
    queue.call_on_stop(first.mark_orderly_exit)
    queue.stop()
    first.back_off()  # and then its window lost patience, while the system killed another program
    second = MemoryBackoff(home, "boot:4")
    assert (second.was_killed, second.parts) == (False, 2)


def test_a_day_of_work_for_which_memory_sufficed_takes_one_halving_back_and_running_short_begins_it_anew(tmp_path):
    home, parts = paths.Home(tmp_path), []
    backoff = MemoryBackoff(home, "")
    backoff.record_success(RECOVERY_SECONDS)
    assert backoff.back_off()
    assert backoff.back_off()
    for _ in range(3):
        backoff.record_success(RECOVERY_SECONDS / 2)
        backoff.mark_orderly_exit()
        backoff = MemoryBackoff(home, "")
        backoff.use_model("")
        parts.append(backoff.parts)
    assert parts == [4, 2, 2]
    assert backoff.back_off()
    backoff.record_success(RECOVERY_SECONDS * 0.7)
    assert backoff.parts == 4, "half a day of before counts no more"


def test_a_day_of_work_counts_also_where_each_hour_of_it_ends_with_a_kill(tmp_path):
    home = paths.Home(tmp_path)
    MemoryBackoff(home, "").back_off()
    for hour in range(24):
        backoff = MemoryBackoff(home, "")
        backoff.use_model("")
        assert backoff.parts == 2, f"after {hour} hours"
        backoff.record_success(RECOVERY_SECONDS / 24)
    backoff = MemoryBackoff(home, "")
    backoff.use_model("")
    assert backoff.parts == 1


def test_an_engine_that_runs_short_after_a_day_works_in_smaller_parts_than_it_did_then(tmp_path):
    backoff = MemoryBackoff(paths.Home(tmp_path), "")
    backoff.back_off()
    backoff.record_success(RECOVERY_SECONDS)
    assert backoff.parts == 2, "the next start takes larger ones"
    backoff.back_off()
    assert backoff.parts == 4


@pytest.mark.parametrize(("fitted", "parts"), [(1, [2, 4, 8, 16]), (4, [8, 16]), (16, [])])
def test_what_fits_in_parts_only_is_halved_from_there_while_that_changes_anything(tmp_path, fitted, parts):
    backoff = MemoryBackoff(paths.Home(tmp_path), "")
    measured = []
    assert backoff.parts_for(fitted) == fitted
    while backoff.back_off():
        measured.append(backoff.parts_for(fitted))
    assert measured == parts
    assert memory_fit.PARTS[-1] == MAX_PARTS


@pytest.mark.parametrize(("fitted", "smaller"), [(8, True), (16, False)])
def test_after_a_kill_smaller_parts_are_promised_only_where_there_are_any(tmp_path, fitted, smaller):
    home = paths.Home(tmp_path)
    first = MemoryBackoff(home, "boot:1")
    first.use_model("owner/large")
    first.parts_for(fitted)
    second = MemoryBackoff(home, "boot:2")
    assert (second.was_killed, second.started_smaller) == (True, smaller)
    second.use_model("owner/large")
    assert second.parts_for(fitted) == 16
    second.use_model("owner/small")
    assert second.parts == 1, "nothing is known of another model"


def test_parts_are_those_of_one_model_also_when_it_was_killed_for_want_of_memory(tmp_path):
    home = paths.Home(tmp_path)
    backoff = MemoryBackoff(home, "boot:1")
    backoff.use_model("owner/large")
    backoff = MemoryBackoff(home, "boot:2")
    assert backoff.was_killed
    backoff.use_model("")
    assert backoff.parts == 1
    backoff.use_model("owner/large")
    assert backoff.parts == 2


@pytest.mark.parametrize(
    ("then", "now", "has_grown"),
    [("a:1", "a:2", True), ("a:1", "a:1", False), ("a:1", "b:2", False), ("", "a:2", False), ("a:1", "", False)],
)
def test_only_kills_since_the_start_in_the_same_run_of_the_system_count(then, now, has_grown):
    assert was_killed_between(then, now) is has_grown


@pytest.mark.parametrize(("then", "now", "parts"), [(4.0, 8.0, 1), (4.0, 0.0, 1), (4.0, 2.0, 2), (4.0, 4.0, 2), (0.0, 4.0, 2)])
def test_whoever_allows_more_memory_gets_the_usual_parts_back(tmp_path, then, now, parts):
    backoff = MemoryBackoff(paths.Home(tmp_path), kills="")
    backoff.apply_limit(then)
    backoff.back_off()
    backoff.apply_limit(now)
    assert MemoryBackoff(paths.Home(tmp_path), kills="").parts == parts


def test_a_damaged_note_of_frugality_is_begun_anew(tmp_path):
    (tmp_path / "frugality.json").write_bytes(b"\xff")
    assert MemoryBackoff(paths.Home(tmp_path), "a:1").parts == 1
