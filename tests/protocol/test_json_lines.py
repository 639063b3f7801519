"""Test the lines between window and engine."""

import tracemalloc

import pytest

from waggle.core.errors import EngineError
from waggle.protocol import (
    commands,
    events,
    events_chat,
    events_guards,
    events_identity,
    events_leaderboard,
    events_models,
    events_outbox,
    events_playground,
    events_questions,
    events_swarms,
    json_lines,
)
from waggle.protocol.state import AnyEvent, Snapshot, State


def test_every_event_and_command_survives_the_way_through_a_line():
    messages = [
        events.PhaseChanged(phase="paused", round=3, until=5.0),
        events.CompletionsProgress(round=1, rows=((0, 1, "a\nb", True),)),
        events.HeldOutProgress(done=2, total=3),
        events.HeldOutMeasured(score=events.HeldOutScore(round=1, at=1.0, right=2, total=3)),
        Snapshot(state=State(peers={"a": events.PeerInfo(id="a", name="n")})),
    ]
    for message in messages:
        line = json_lines.line(message)
        assert line.count(b"\n") == 1
        assert json_lines.event(line) == message
    for command in (commands.Pause(id="1", until=2.0), commands.Stop(id="2"), commands.QueryHistory(id="3")):
        assert json_lines.command(json_lines.line(command)) == command


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b"[]",
        b'{"type":"Nonsense"}',
        b'{"type":"Pause"}',
        b'{"type":"Pause","id":"1","x":1}',
        b'{"type":"\xff"}',
        b'{"x":' * 5000,
    ],
)
def test_a_line_that_is_no_command_is_refused_in_words(line):
    with pytest.raises(EngineError):
        json_lines.command(line)


def test_a_recording_skips_what_this_version_does_not_know(tmp_path):
    path = tmp_path / "run.jsonl"
    unknown = (b'{"type":"FromTheFuture"}', b"garbage", b'{"type":"CommandDone","id":"\xff"}', b'{"x":' * 5000)
    path.write_bytes(json_lines.line(events.CommandDone(id="1")) + b"\n".join(unknown) + b"\n")
    assert list(json_lines.recording(path)) == [events.CommandDone(id="1"), None, None, None, None]


def test_a_line_of_a_recording_that_is_longer_than_any_is_skipped_and_never_whole_in_memory(tmp_path):
    path = tmp_path / "run.jsonl"
    with path.open("wb") as file:
        file.truncate(8 * json_lines.MAX_LINE)
        file.seek(0, 2)
        file.write(b"\n" + json_lines.line(events.CommandDone(id="1")))
    tracemalloc.start()
    assert list(json_lines.recording(path)) == [None, events.CommandDone(id="1")]
    assert tracemalloc.get_traced_memory()[1] < 4 * json_lines.MAX_LINE
    tracemalloc.stop()


@pytest.mark.parametrize("at", [-1.0, 1e300])
def test_nothing_is_recorded_of_a_moment_that_no_system_can_print(tmp_path, at):
    path = tmp_path / "run.jsonl"
    path.write_bytes(json_lines.line(events.CommandDone(id="1", at=at)))
    assert list(json_lines.recording(path)) == [None]


@pytest.mark.parametrize("changed", [b'"group_size":2147483648', b'"group_size":-1', b'"group_size":1e9'])
def test_a_recording_cannot_ask_for_more_blank_answers_than_a_group_has(changed):
    drawn = json_lines.line(events.QuestionsDrawn(round=1, epoch=5, group_size=2, groups=()))
    with pytest.raises(EngineError):
        json_lines.event(drawn.replace(b'"group_size":2', changed))


@pytest.mark.parametrize("changed", [b'"solved":1e308', b'"completions":1' + b"0" * 400])
def test_a_recording_cannot_count_what_nobody_can_count(changed):
    summary = events.RoundSummary(round=1, at=0, reward=0, solved=0.5, seconds=1, completions=1)
    line = json_lines.line(events.RoundCompleted(summary=summary))
    name = changed.partition(b":")[0]
    before = {b'"solved"': b'"solved":0.5', b'"completions"': b'"completions":1'}[name]
    with pytest.raises(EngineError):
        json_lines.event(line.replace(before, changed))


def test_the_union_of_events_is_complete():
    kinds = [
        kind
        for part in (
            events_leaderboard,
            events,
            events_swarms,
            events_models,
            events_identity,
            events_outbox,
            events_chat,
            events_guards,
            events_playground,
            events_questions,
        )
        for kind in vars(part).values()
    ]
    named = {kind for kind in kinds if isinstance(kind, type) and issubclass(kind, events.Event)} - {events.Event}
    assert named | {Snapshot} == set(AnyEvent.__args__)
