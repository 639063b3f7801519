"""Test how the publisher numbers, records and sends events."""

import asyncio
import itertools
import os
import shutil
import sys
import threading
import time

import pytest

from full_disk import full_beyond
from waggle.engine.control import stdio
from waggle.engine.runtime import event_publisher as tellers
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.protocol import events, json_lines
from waggle.protocol.events_models import HubResults
from waggle.protocol.state import Snapshot, State, apply


@pytest.fixture
async def publisher(tmp_path):
    publisher = EventPublisher(tmp_path, clock=lambda: 100.0)
    yield publisher
    publisher.close()


def recorded(folder):
    return [event for path in sorted(folder.glob("*.jsonl")) for event in json_lines.recording(path)]


async def test_events_are_numbered_stamped_kept_and_passed_on(publisher, tmp_path):
    lines: list[bytes] = []
    publisher.attach(lines.append)
    publisher.publish(events.PartRestarted(part="verifier", reason="killed"))
    publisher.publish(events.EngineStopped(round=4))
    passed = [json_lines.event(line) for line in lines]
    assert [(event.seq, event.at) for event in passed] == [(1, 100.0), (2, 100.0)]
    assert recorded(tmp_path) == passed
    assert publisher.state.phase == "stopped"


async def test_the_record_of_a_run_folds_into_the_state_of_the_run(publisher, tmp_path):
    publisher.publish(events.Preparing(part="Loading", done=0, parts=1))
    publisher.publish(events.PhaseChanged(phase="contributing", round=2))
    state = State()
    for event in recorded(tmp_path):
        state = apply(state, event)
    assert state == publisher.state


async def test_growing_completions_are_kept_for_the_round_in_progress_only(publisher, tmp_path):
    for number in (1, 2):
        publisher.publish(events.QuestionsDrawn(round=number, epoch=1, groups=(), group_size=2))
        publisher.publish(events.CompletionsProgress(round=number, rows=()))
        publisher.publish(events.HeldOutProgress(done=number, total=2))
    assert not any(isinstance(event, events.CompletionsProgress | events.HeldOutProgress) for event in recorded(tmp_path))
    written = list(json_lines.recording(tmp_path / "writing.part"))
    assert [type(event) for event in written] == [events.CompletionsProgress, events.HeldOutProgress]
    assert written[0].round == written[1].done == 2


async def test_what_is_kept_of_completions_while_they_grow_is_bounded(publisher, tmp_path, monkeypatch):
    monkeypatch.setattr(tellers, "FILE_BYTES", 2000)
    growing = tmp_path / "writing.part"
    for number in (1, 2):
        publisher.publish(events.QuestionsDrawn(round=number, epoch=1, groups=(), group_size=2))
        assert growing.stat().st_size == 0
        for length in range(100):
            publisher.publish(events.CompletionsProgress(round=number, rows=((0, 0, "x" * length, False),)))
        assert 2000 <= growing.stat().st_size < 2300


def small(monkeypatch):
    monkeypatch.setattr(tellers, "FILE_BYTES", 300)
    monkeypatch.setattr(tellers, "MAX_OLD_BYTES", 5000)


async def test_records_go_by_their_size_however_often_the_engine_starts(tmp_path, monkeypatch):
    for number in range(20):
        publisher = EventPublisher(tmp_path, clock=lambda at=1e9 + number: at)  # files of one moment have no order
        publisher.publish(events.PhaseChanged(phase="contributing", round=number))
        publisher.close()
    assert sorted(event.round for event in recorded(tmp_path)) == list(range(20))
    monkeypatch.setattr(tellers, "MAX_OLD_FILES", 3)
    EventPublisher(tmp_path).close()
    assert sorted(event.round for event in recorded(tmp_path)) == [17, 18, 19]


async def test_a_full_record_is_followed_by_one_that_begins_with_everything_known(publisher, tmp_path, monkeypatch):
    small(monkeypatch)
    for number in range(40):
        publisher.publish(events.PhaseChanged(phase="contributing", round=number))
    files = sorted(tmp_path.glob("*.jsonl"))
    assert len(files) > 2
    assert 4000 < sum(path.stat().st_size for path in files) < 7000
    newest = list(json_lines.recording(max(files, key=lambda path: path.stat().st_mtime_ns)))
    assert isinstance(newest[0], Snapshot)


async def test_a_recording_that_a_person_keeps_among_the_records_stays(tmp_path, monkeypatch):
    small(monkeypatch)
    (tmp_path / "2026.jsonl").write_bytes(b"x" * 100_000)
    os.utime(tmp_path / "2026.jsonl", (1.0, 1.0))
    EventPublisher(tmp_path).close()
    assert (tmp_path / "2026.jsonl").exists()


async def test_the_newest_records_stay_whatever_the_clock_said_and_though_one_cannot_be_removed(tmp_path, monkeypatch):
    small(monkeypatch)
    ahead = time.time() + 1e8
    for number in range(6):
        path = tmp_path / f"2040010{number}T000000-000000.jsonl"
        path.touch()
        os.utime(path, (ahead, ahead))
    (tmp_path / "19700101T000000-000000.jsonl").mkdir()  # stands for one that somebody holds open on Windows
    publisher = EventPublisher(tmp_path, clock=itertools.count(time.time() + 1.0).__next__)
    for number in range(40):
        publisher.publish(events.PhaseChanged(phase="contributing", round=number))
    assert os.fstat(publisher._record.fileno()).st_nlink == 1, "the one that is written is there"
    publisher.close()
    files = [path for path in tmp_path.glob("*.jsonl") if path.is_file()]
    assert not [path.name for path in files if path.name.startswith("2040")]
    assert sum(path.stat().st_size for path in files) < 7000
    recorded_events = [event for path in files for event in json_lines.recording(path)]
    assert {38, 39} <= {event.round for event in recorded_events if isinstance(event, events.PhaseChanged)}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows removes no folder with an open file")
async def test_where_no_further_record_can_be_opened_whoever_listens_still_hears(publisher, tmp_path, monkeypatch):
    monkeypatch.setattr(tellers, "FILE_BYTES", 300)
    lines: list[bytes] = []
    publisher.attach(lines.append)
    shutil.rmtree(tmp_path)
    for number in range(20):
        publisher.publish(events.PhaseChanged(phase="contributing", round=number))
    assert [json_lines.event(line).round for line in lines] == list(range(20))
    tmp_path.mkdir()
    publisher.publish(events.EngineStopped(round=20))
    assert [type(event) for event in recorded(tmp_path)] == [Snapshot], "the record goes on as soon as it can"


@pytest.mark.parametrize("room", [0, 10, 130])
async def test_a_line_that_a_full_disk_tears_is_not_left_in_the_record(publisher, tmp_path, room):
    publisher.publish(events.PhaseChanged(phase="contributing", round=1))
    size = sum(path.stat().st_size for path in tmp_path.glob("*.jsonl"))
    with full_beyond(size + room):
        publisher.publish(events.Warned(title="a long one " * 20))
    publisher.publish(events.PhaseChanged(phase="contributing", round=2))
    publisher.publish(events.PhaseChanged(phase="contributing", round=3))
    recorded_events = recorded(tmp_path)
    assert [type(event) for event in recorded_events] == [events.PhaseChanged, Snapshot, events.PhaseChanged]
    assert recorded_events[1].state.warnings


async def test_a_listener_that_does_not_read_for_long_costs_little_memory_and_then_gets_everything_known(publisher):
    ours, theirs = os.pipe()
    writer = stdio.Writer(theirs)
    publisher.attach(writer, writer.unwritten_bytes)
    for number in range(300):
        publisher.publish(HubResults(words=f"{number} {'x' * 100_000}", models=()))
    lines: list[bytes] = []
    with os.fdopen(ours, "rb") as window:
        reads = threading.Thread(target=lambda: lines.extend(window))
        reads.start()
        async with asyncio.timeout(60):
            while writer.unwritten_bytes():
                await asyncio.sleep(0)
        publisher.publish(events.PhaseChanged(phase="paused", round=7))
        publisher.publish(events.EngineStopped(round=8))
        writer.close()
        os.close(theirs)
        reads.join(60)
    assert sum(map(len, lines[:-2])) < tellers.MAX_UNREAD_BYTES + 200_000
    sent_events = [json_lines.event(line) for line in lines]
    assert [type(event) for event in sent_events[-2:]] == [Snapshot, events.EngineStopped]
    state = State()
    for event in sent_events:
        state = apply(state, event)
    assert state == publisher.state
