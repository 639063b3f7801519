"""Test that an engine that ran short of memory works in smaller parts, until memory has sufficed for a while."""

import pytest

from waggle.core import paths
from waggle.engine.control.command_queue import CommandQueue
from waggle.engine.system.memory_backoff import MAX_PARTS, RECOVERY_SECONDS, MemoryBackoff, was_killed_between
from waggle.models import memory_fit


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
