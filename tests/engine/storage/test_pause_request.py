"""Test that a pause request survives a restart, a kill and an end of the engine."""

import asyncio

import pytest

from waggle.engine.lifecycle import Lifecycle
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.storage.pause_request import PauseRequest
from waggle.protocol import commands
from waggle.protocol.events_swarms import StartedAgain
from waggle.protocol.schedule import Readings, Wishes
from waggle.protocol.text.status_text import sentence

HERE, AWAY = Readings(idle_seconds=0.0), Readings(idle_seconds=181.0)


@pytest.fixture
async def publisher(tmp_path):
    publisher = EventPublisher(tmp_path, clock=lambda: 1000.0)
    yield publisher
    publisher.close()


async def before(publisher, folder, request: PauseRequest, *asked_for: commands.AnyCommand) -> None:
    """An engine that contributes, gets commands, and is followed by another."""
    engine = Lifecycle(publisher, request=request)
    engine.start_contributing()
    engine.decide_again(HERE)
    engine.gate.stop()
    for command in asked_for:
        engine._halted.set()  # nothing moves here
        await engine.obey(command)
    engine.stop()


async def then(publisher, folder, request: PauseRequest) -> Lifecycle:
    """The engine after it, ready to continue."""
    publisher.publish(StartedAgain(reason="Going on with another model."))
    engine = Lifecycle(publisher, request=request)
    engine.start_contributing()
    return engine


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize(
    ("pause", "words"),
    [
        (commands.Pause(id="1"), "Paused."),
        (commands.Pause(id="1", until=4600.0), "Paused until "),
        (commands.Pause(id="1", until_away=True), "Paused until you are away."),
    ],
)
async def test_a_pause_goes_over_to_the_next_engine_as_it_was_asked_for(publisher, tmp_path, pause, words, killed):
    file = tmp_path / "asked.json"
    request = PauseRequest(file)
    await before(publisher, tmp_path, request, pause)
    request = PauseRequest(file) if killed else request
    for _ in range(2):  # what was chosen cannot begin, and the engine goes back
        engine = await then(publisher, tmp_path, request)
        assert engine.gate.is_closed
    engine._at_gate()  # as the policy thread does
    assert publisher.state.phase == "paused"
    assert sentence(publisher.state).says.startswith(words)
    engine.decide_again(AWAY)
    assert engine.gate.is_closed != pause.until_away
    assert file.exists() != pause.until_away


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("asked_for", ["a pause of an hour", "to contribute anyway"])
async def test_what_was_asked_for_while_the_clock_was_years_ahead_lasts_as_long_as_it_was_to(tmp_path, asked_for, killed):
    clock, file, battery = [2_150_000_000.0], tmp_path / "asked.json", Readings(on_power=False)
    publisher = EventPublisher(tmp_path, clock=lambda: clock[0])
    engine = Lifecycle(publisher, request=PauseRequest(file))
    engine.start_contributing()
    engine.decide_again(battery)
    pause = asked_for == "a pause of an hour"
    engine._halted.set()  # nothing moves here
    await engine.obey(commands.Pause(id="1", until=clock[0] + 3600) if pause else commands.Resume(id="1"))

    clock[0] = 1_800_000_000.0
    if killed:
        engine.stop()
        engine = await then(publisher, tmp_path, PauseRequest(file))
    engine.decide_again(battery)
    decision = publisher.state.decision
    assert decision.standing == ("paused" if pause else "contributing"), "it holds"
    assert (engine._until("paused") if pause else decision.anyway_until) == clock[0] + 3600
    clock[0] += 3600
    engine.decide_again(battery)
    assert publisher.state.decision.standing == "waiting", "it is over, and the rules hold again"
    engine.stop()
    publisher.close()


async def test_a_round_that_was_to_be_the_last_is_so_in_the_next_engine(publisher, tmp_path):
    request = PauseRequest()
    await before(publisher, tmp_path, request, commands.Pause(id="1", after_round=True, until=4600.0))
    engine = await then(publisher, tmp_path, request)
    assert (publisher.state.phase, publisher.state.until, engine.gate.is_closed) == ("finishing", 4600.0, False)
    engine.handle_round_end()
    assert engine.gate.is_closed
    engine._at_gate()
    assert (publisher.state.phase, publisher.state.until) == ("paused", 4600.0)


async def test_what_was_taken_back_is_not_asked_for_any_more(publisher, tmp_path):
    file = tmp_path / "asked.json"
    await before(publisher, tmp_path, PauseRequest(file), commands.Pause(id="1"), commands.Resume(id="2"))
    assert not file.exists()


async def test_a_pause_for_an_hour_takes_the_place_of_one_after_the_round(publisher, tmp_path):
    request = PauseRequest()
    later, hour = commands.Pause(id="1", after_round=True), commands.Pause(id="2", until=4600.0)
    await before(publisher, tmp_path, request, later, hour)
    assert request.wishes == Wishes(paused=True, until=4600.0, asked_at=1000.0)


async def test_an_engine_that_was_left_decides_no_more_and_hands_on_what_it_is_asked_for_last(publisher, tmp_path):
    request = PauseRequest()
    engine = Lifecycle(publisher, request=request)
    engine.start_contributing()
    engine._halted.set()  # nothing moves here
    await engine.obey(commands.Pause(id="1", until=1000.01))
    engine.restart("Going on with another model.")
    async with asyncio.timeout(60):
        await engine.obey(commands.Pause(id="2", until=1000.02))
    assert request.wishes == Wishes(paused=True, until=1000.02, asked_at=1000.0)
    request.save(Wishes(paused=True))  # as the next one does
    await asyncio.sleep(0.1)
    assert request.wishes == Wishes(paused=True)


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"{",
        b"[]",
        b'{"paused":1}',
        b'{"paused":true,"until":1e300}',
        b'{"until":1e99}',
        b'{"paused":true' + b" " * 5000 + b"}",
    ],
)
def test_a_damaged_file_may_have_been_a_pause(tmp_path, damaged):
    (tmp_path / "asked.json").write_bytes(damaged)
    request = PauseRequest(tmp_path / "asked.json")
    assert request.wishes == Wishes(paused=True)
    assert request.aside == tmp_path / "asked.damaged"
    assert request.aside.read_bytes() == damaged
    next_request = PauseRequest(tmp_path / "asked.json")
    assert (next_request.wishes, next_request.aside) == (Wishes(paused=True), None), "it is said once, and holds"
    next_request.save(Wishes())
    assert PauseRequest(tmp_path / "asked.json").wishes == Wishes()


def test_what_cannot_be_written_holds_as_long_as_the_process(tmp_path):
    request = PauseRequest(tmp_path / "nowhere" / "asked.json")
    request.save(Wishes(paused=True))
    assert request.wishes.paused
