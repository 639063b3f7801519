"""Test pause, resume and stop, with a policy thread that only passes the gate."""

import asyncio
import threading
import time

import pytest

from waggle.core import paths
from waggle.core.errors import CheckpointError, EngineError, Stopped, VerifierGone, WaggleError
from waggle.core.settings import ScheduleSettings
from waggle.engine import computer_watch
from waggle.engine import lifecycle as lifecycles
from waggle.engine.command_handler import EngineHandler
from waggle.engine.lifecycle import Lifecycle
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.live_settings import LiveSettings
from waggle.engine.runtime.undo_log import UndoLog
from waggle.engine.storage.history import History
from waggle.engine.system import sensors
from waggle.engine.system.memory_backoff import MemoryBackoff
from waggle.protocol import commands, events, json_lines
from waggle.protocol.schedule import Readings
from waggle.protocol.state import Snapshot
from waggle.protocol.text.status_text import sentence

BATTERY, PLUGGED = Readings(on_power=False, idle_seconds=0.0), Readings(on_power=True, idle_seconds=0.0)


class Walker:
    """Passes the gate in a loop and counts its steps; a step takes as long as the event `step` is cleared."""

    def __init__(self, gate) -> None:
        self.steps = 0
        self.step, self.in_step = threading.Event(), threading.Event()
        self.step.set()
        self._gate = gate
        self.thread = threading.Thread(target=self._walk)
        self.thread.start()

    def _walk(self) -> None:
        try:
            while True:
                self._gate()
                self.steps += 1
                if not self.step.is_set():
                    self.in_step.set()
                    self.step.wait(60)
        except Stopped:
            return


@pytest.fixture
async def lifecycle(tmp_path):
    began = time.monotonic()
    publisher = EventPublisher(tmp_path, clock=lambda: 1000.0 + time.monotonic() - began)
    new_lifecycle = Lifecycle(publisher)
    new_lifecycle.publisher = publisher
    new_lifecycle.start_contributing()
    new_lifecycle.walker = Walker(new_lifecycle.gate)
    yield new_lifecycle
    new_lifecycle.stop()
    new_lifecycle.walker.thread.join(60)
    assert not new_lifecycle.walker.thread.is_alive()
    publisher.close()


async def reached(lifecycle, phase) -> None:
    async with asyncio.timeout(60):
        while lifecycle.publisher.state.phase != phase:
            await asyncio.sleep(0.01)


async def test_a_pause_is_answered_once_nothing_moves_any_more(lifecycle):
    walker = lifecycle.walker
    walker.step.clear()
    assert await asyncio.to_thread(walker.in_step.wait, 30)
    before = walker.steps
    pausing = asyncio.ensure_future(lifecycle.obey(commands.Pause(id="7")))
    async with asyncio.timeout(60):
        while not lifecycle.gate.is_closed:
            await asyncio.sleep(0)
    for _ in range(20):  # as many turns of the loop as an answer could need
        await asyncio.sleep(0)
    assert not pausing.done(), "a step is in progress"
    walker.step.set()
    (done,) = await pausing
    assert (type(done), done.id, walker.steps) == (events.CommandDone, "7", before)
    assert lifecycle.publisher.state.phase == "paused"
    await lifecycle.obey(commands.Resume(id="8"))
    assert lifecycle.publisher.state.phase == "contributing"


async def test_a_timed_pause_ends_by_itself(lifecycle):
    lines: list[bytes] = []
    lifecycle.publisher.attach(lines.append)
    until = lifecycle.publisher.now() + 3.0
    await lifecycle.obey(commands.Pause(id="1", until=until))
    paused = next(event for event in map(json_lines.event, lines) if isinstance(event, events.PhaseChanged))
    assert (paused.phase, paused.until) == ("paused", until)
    await reached(lifecycle, "contributing")


async def test_the_length_of_a_pause_counts_by_the_clock_of_the_engine(lifecycle):
    lines: list[bytes] = []
    lifecycle.publisher.attach(lines.append)
    before = lifecycle.publisher.now()
    await lifecycle.obey(commands.Pause(id="1", seconds=3600.0, until=1.0))
    paused = next(event for event in map(json_lines.event, lines) if isinstance(event, events.PhaseChanged))
    assert paused.until == pytest.approx(before + 3600, abs=60)
    await lifecycle.obey(commands.Pause(id="2", seconds=0.5))
    await reached(lifecycle, "contributing")


async def test_pausing_after_the_round_waits_for_its_end(lifecycle):
    await lifecycle.obey(commands.Pause(id="1", after_round=True))
    assert lifecycle.publisher.state.phase == "finishing"
    assert not lifecycle.gate.is_closed
    lifecycle.handle_round_end()
    await reached(lifecycle, "paused")


async def test_a_resume_before_the_round_ended_takes_the_pause_back(lifecycle):
    await lifecycle.obey(commands.Pause(id="1", after_round=True))
    await lifecycle.obey(commands.Resume(id="2"))
    lifecycle.handle_round_end()
    assert not lifecycle.gate.is_closed
    assert lifecycle.publisher.state.phase == "contributing"


async def test_pausing_after_the_round_while_paused_stays_paused(lifecycle):
    await lifecycle.obey(commands.Pause(id="1"))
    await lifecycle.obey(commands.Pause(id="2", after_round=True))
    assert lifecycle.publisher.state.phase == "paused"


async def test_a_stop_is_for_good_even_when_a_pause_follows(lifecycle):
    await lifecycle.obey(commands.Pause(id="1", after_round=True))
    lifecycle.stop()
    lifecycle.handle_round_end()
    lifecycle.walker.thread.join(60)
    assert not lifecycle.walker.thread.is_alive()


async def test_pausing_twice_and_resuming_twice_does_no_harm(lifecycle):
    for command in (commands.Pause, commands.Pause, commands.Resume, commands.Resume):
        assert isinstance((await lifecycle.obey(command(id="1")))[-1], events.CommandDone)
    assert lifecycle.publisher.state.phase == "contributing"


async def test_status_and_history_are_told_to_the_asker_alone(lifecycle, tmp_path):
    handler = EngineHandler(lifecycle, lifecycle.publisher, History(tmp_path / "history.sqlite"), paths.Home(tmp_path))
    lines: list[bytes] = []
    lifecycle.publisher.attach(lines.append)
    snapshot, _done = await handler.obey(commands.Status(id="1"))
    assert isinstance(snapshot, Snapshot)
    assert snapshot.state.phase == "contributing"
    with pytest.raises(EngineError, match="still starting"):
        await handler.obey(commands.ListModels(id="3"))
    with pytest.raises(EngineError, match="not joined yet"):
        await handler.obey(commands.ChoosePeer(id="4", peer="p", choice="muted"))
    history, _ = await handler.obey(commands.QueryHistory(id="2"))
    assert isinstance(history, events.TrainingHistory)
    assert lines == []


async def test_a_resume_that_overtakes_a_pause_releases_it_and_nobody_says_paused(lifecycle):
    for _ in range(50):
        pausing = asyncio.create_task(lifecycle.obey(commands.Pause(id="1")))
        await asyncio.sleep(0)  # the pause has closed the gate and waits
        await lifecycle.obey(commands.Resume(id="2"))
        async with asyncio.timeout(60):
            await pausing
        assert lifecycle.publisher.state.phase == "contributing"
        assert not lifecycle.gate.is_closed


async def test_a_step_that_does_not_end_is_said_and_still_pauses_later(lifecycle, monkeypatch):
    monkeypatch.setattr(lifecycles, "PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(lifecycle, "_at_gate", lambda: None)  # as if the policy thread were in the middle of a step
    with pytest.raises(EngineError, match="middle of a step"):
        await lifecycle.obey(commands.Pause(id="1"))
    assert lifecycle.gate.is_closed


async def test_on_battery_it_waits_and_goes_on_by_itself_when_plugged_in(lifecycle):
    lifecycle.decide_again(BATTERY)
    await reached(lifecycle, "waiting")
    status = sentence(lifecycle.publisher.state)
    assert (status.word, status.says, status.action) == ("Waiting", "The computer runs on battery.", "anyway")
    assert status.detail == "Starts when you plug it in. Nothing was lost."
    before = lifecycle.walker.steps
    lifecycle.decide_again(BATTERY)
    assert lifecycle.walker.steps == before
    lifecycle.decide_again(PLUGGED)
    assert lifecycle.publisher.state.phase == "contributing"


async def test_contributing_anyway_holds_against_the_rules_and_says_until_when(lifecycle):
    lifecycle.decide_again(BATTERY)
    await reached(lifecycle, "waiting")
    await lifecycle.obey(commands.Resume(id="1", anyway_until=lifecycle.publisher.now() + 4.0))
    assert lifecycle.publisher.state.phase == "contributing"
    assert "Your rules wait until " in sentence(lifecycle.publisher.state).detail
    await reached(lifecycle, "waiting")


async def test_contributing_anyway_goes_on_when_one_resumes_again_or_takes_a_pause_after_the_round_back(lifecycle):
    lifecycle.decide_again(BATTERY)
    await reached(lifecycle, "waiting")
    await lifecycle.obey(commands.Resume(id="1"))
    until = lifecycle.publisher.state.decision.anyway_until
    assert until > lifecycle.publisher.now()
    await lifecycle.obey(commands.Resume(id="2"))
    assert lifecycle.publisher.state.decision.anyway_until == until
    await lifecycle.obey(commands.Pause(id="3", after_round=True))
    await lifecycle.obey(commands.Resume(id="4"))
    assert lifecycle.publisher.state.phase == "contributing"
    assert lifecycle.publisher.state.decision.anyway_until == until


async def test_a_pause_while_waiting_outlives_the_reason_to_wait(lifecycle):
    lifecycle.decide_again(BATTERY)
    await reached(lifecycle, "waiting")
    await lifecycle.obey(commands.Pause(id="1"))
    assert lifecycle.publisher.state.phase == "paused"
    assert sentence(lifecycle.publisher.state).says == "Paused."
    lifecycle.decide_again(PLUGGED)
    assert lifecycle.publisher.state.phase == "paused"
    lifecycle.decide_again(BATTERY)
    await lifecycle.obey(commands.Resume(id="2"))
    assert lifecycle.publisher.state.phase == "waiting"


async def test_a_pause_until_one_is_away_ends_when_one_is(lifecycle):
    lifecycle.decide_again(PLUGGED)
    await lifecycle.obey(commands.Pause(id="1", until_away=True))
    assert sentence(lifecycle.publisher.state).says == "Paused until you are away."
    lifecycle.decide_again(Readings(on_power=True, idle_seconds=181.0))
    assert lifecycle.publisher.state.phase == "contributing"


async def test_whoever_looks_around_asks_whether_one_is_away_when_a_pause_waits_for_that(lifecycle, tmp_path, monkeypatch):
    monkeypatch.setattr(sensors, "idle_seconds", lambda: 600.0)
    home, publisher = paths.Home(tmp_path / "home").prepare(), lifecycle.publisher
    choices = LiveSettings(home.settings, (), publisher)
    assert not choices.now.when.idle_minutes, "no rule asks"
    lifecycle.decide_again(PLUGGED)
    await lifecycle.obey(commands.Pause(id="1", until_away=True))
    watch = asyncio.ensure_future(computer_watch.watch_computer(lifecycle, choices, publisher, MemoryBackoff(home, "")))
    await reached(lifecycle, "contributing")
    watch.cancel()
    await asyncio.wait([watch])


async def test_a_pause_until_one_is_away_is_refused_where_nobody_can_tell(lifecycle):
    with pytest.raises(EngineError, match="does not tell"):
        await lifecycle.obey(commands.Pause(id="1", until_away=True))
    assert lifecycle.publisher.state.phase == "contributing"


async def test_a_round_is_finished_before_a_pause_though_the_rules_wait_in_between(lifecycle):
    await lifecycle.obey(commands.Pause(id="1", after_round=True, until=2000.0))
    lifecycle.decide_again(BATTERY)
    await reached(lifecycle, "waiting")
    lifecycle.decide_again(PLUGGED)
    assert lifecycle.publisher.state.phase == "finishing"
    lifecycle.handle_round_end()
    await reached(lifecycle, "paused")
    assert lifecycle.publisher.state.until == 2000.0


async def test_other_rules_hold_at_once(lifecycle):
    lifecycle.decide_again(BATTERY)
    await reached(lifecycle, "waiting")
    lifecycle.apply_rules(ScheduleSettings(only_on_power=False))
    assert lifecycle.publisher.state.phase == "contributing"


async def test_what_stays_the_same_is_told_once(lifecycle):
    lines: list[bytes] = []
    lifecycle.publisher.attach(lines.append)
    for _ in range(5):
        lifecycle.decide_again(PLUGGED)
    assert sum(b"RulesChecked" in line for line in lines) == 1


async def test_contributing_anyway_holds_across_a_hiccup_of_the_disk(lifecycle):
    lifecycle.decide_again(BATTERY)
    await reached(lifecycle, "waiting")
    await lifecycle.obey(commands.Resume(id="1"))
    lifecycle.report_blocker(CheckpointError("Round 3 could not be saved.", "Make room."))
    await reached(lifecycle, "waiting")
    await lifecycle.obey(commands.Resume(id="2"))
    lifecycle.report_blocker(None)
    await reached(lifecycle, "contributing")


async def test_resuming_while_the_disk_is_full_sends_no_rule_away(lifecycle):
    lifecycle.report_blocker(CheckpointError("Round 3 could not be saved.", "Make room."))
    await reached(lifecycle, "waiting")
    await lifecycle.obey(commands.Resume(id="1"))
    lifecycle.report_blocker(None)
    await reached(lifecycle, "contributing")
    lifecycle.decide_again(BATTERY)
    await reached(lifecycle, "waiting")


async def test_a_disk_that_takes_no_more_is_said_and_ends_by_itself_when_it_does(lifecycle):
    full = CheckpointError("Round 3 could not be saved: No space left on device.", "Make room on the disk.")
    lifecycle.report_blocker(full)
    await reached(lifecycle, "waiting")
    status = sentence(lifecycle.publisher.state)
    assert (status.says, status.detail, status.action) == (
        full.title,
        "Make room on the disk. Then it continues by itself.",
        "none",
    )
    await lifecycle.obey(commands.Resume(id="1"))
    assert lifecycle.publisher.state.phase == "waiting"
    lifecycle.report_blocker(None)
    await reached(lifecycle, "contributing")


async def test_a_verifier_that_cannot_be_started_is_said_as_what_is_tried_again(lifecycle):
    gone = VerifierGone("The judging process does not start: no answer within 120 s.", "Look at the page Help.")
    lifecycle.report_blocker(gone)
    await reached(lifecycle, "waiting")
    status = sentence(lifecycle.publisher.state)
    assert (status.says, status.detail) == (gone.title, "It is tried again by itself. Look at the page Help.")
    lifecycle.report_blocker(None)
    await reached(lifecycle, "contributing")


async def test_two_choices_within_one_step_are_both_undone_the_newest_first(lifecycle):
    undone = []
    lifecycle.restart("Going to one.", lambda: undone.append("one"))
    lifecycle.restart("Going to another.", lambda: undone.append("another"))
    assert lifecycle.restart_reason == "Going to another."
    undo_log = UndoLog()
    undo_log.add(lifecycle.undo_steps)
    assert undo_log.undo(WaggleError)
    assert undone == ["another", "one"]
