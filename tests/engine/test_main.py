"""Test the engine's main: a choice that cannot start is undone, however it fails."""

import argparse
import asyncio
import logging
import os
import sys
import time
from functools import partial
from pathlib import Path

import msgspec
import pytest

import waggle
from waggle.core import paths, settings
from waggle.core.errors import MemoryShort, ModelError, ModelMissing, QuestionsTooLong, Stopped, SwarmError
from waggle.core.settings import ModelSettings
from waggle.engine import computer_watch, main
from waggle.engine.control import server, stdio
from waggle.engine.control.command_queue import CommandQueue
from waggle.engine.lifecycle import Lifecycle
from waggle.engine.runtime import model_source
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.live_settings import LiveSettings
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.engine.runtime.undo_log import NOT_CAUSED_BY_MODEL, NOT_CAUSED_BY_SWARM, UndoLog, UndoStep
from waggle.engine.services.models.choice_download import ChoiceDownload
from waggle.engine.startup.host import NodeHost
from waggle.engine.storage.pause_request import PauseRequest
from waggle.engine.system.memory_backoff import MAX_HALVINGS, MemoryBackoff, system_kills
from waggle.protocol import events, json_lines
from waggle.protocol.schedule import Wishes
from waggle.rl.batch import nothing


@pytest.fixture(autouse=True)
def no_priority(monkeypatch) -> None:
    """A changed priority would last for all later tests."""
    monkeypatch.setattr(main, "set_priority", lambda _: True)


@pytest.fixture
async def process(tmp_path):
    """What lives as long as the engine's process."""
    home = paths.Home(tmp_path).prepare()
    publisher = EventPublisher(home.events)
    live_settings = LiveSettings(home.settings, (), publisher)
    yield main.ProcessResources(
        home,
        live_settings,
        publisher,
        CommandQueue(),
        MemoryBackoff(home, ""),
        PauseRequest(),
        UndoLog(),
        ChoiceDownload(publisher),
    )
    publisher.close()


def ends_with(error: Exception):
    async def contribute(*_: object) -> str:
        raise error

    return contribute


async def ran(folder):
    """The exit code of an engine in this folder, and all its events."""
    ours, theirs = os.pipe()
    writer = stdio.Writer(theirs)
    with os.fdopen(ours, "rb") as stream:
        try:
            code = await main._run(argparse.Namespace(home=folder, set=[], stdio=False, until_round=None), writer)
        finally:
            writer.close()
            os.close(theirs)
        return code, [json_lines.event(line) for line in stream]


def said_as_error(caplog, failed: events.EngineFailed) -> None:
    """Check the error log, which is all that the operator of a service sees."""
    (message,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert failed.title in message
    assert failed.detail.strip() in message
    caplog.clear()


@pytest.mark.parametrize("error", [MemoryShort("The model ran out of memory."), ModelError("It is not there.")])
async def test_what_cannot_begin_is_taken_back_also_for_want_of_memory(process, monkeypatch, error):
    went_back = []
    process.undo_log.add(UndoStep(partial(went_back.append, choice)) for choice in ("first choice", "second choice"))
    monkeypatch.setattr(main, "_contribute", ends_with(error))
    assert await main._contribute_or_undo(process, "") == "Going back."
    assert (went_back, process.undo_log.steps) == (["second choice", "first choice"], [])
    assert process.backoff.parts == 1, "what is gone back to fitted as it was"
    assert process.publisher.state.warnings[0].title == error.title


@pytest.mark.parametrize(
    ("error", "undone"),
    [
        (ModelMissing("The hub has lost a file of it."), ["model"]),
        (SwarmError("The port is taken."), ["swarm"]),
        (QuestionsTooLong("The questions are longer than what it reads."), ["swarm", "model"]),
    ],
)
async def test_what_has_nothing_to_do_with_a_failure_stays_chosen(process, monkeypatch, error, undone):
    went_back = []
    process.undo_log.add(
        [
            UndoStep(lambda: went_back.append("model"), NOT_CAUSED_BY_MODEL),
            UndoStep(lambda: went_back.append("swarm"), NOT_CAUSED_BY_SWARM),
        ]
    )
    monkeypatch.setattr(main, "_contribute", ends_with(error))
    assert await main._contribute_or_undo(process, "")
    assert (went_back, len(process.undo_log.steps)) == (undone, 2 - len(undone))
    if undone != ["model"]:
        return
    with pytest.raises(ModelMissing):
        await main._contribute_or_undo(process, "")
    assert went_back == ["model"], "another swarm would not help"


async def test_where_nothing_was_chosen_memory_is_spared_until_there_are_no_smaller_parts(process, monkeypatch):
    monkeypatch.setattr(main, "_contribute", ends_with(MemoryShort("The model ran out of memory.")))
    for times in range(MAX_HALVINGS):
        assert await main._contribute_or_undo(process, "")
        assert process.backoff.parts == 2 << times
    with pytest.raises(MemoryShort):
        await main._contribute_or_undo(process, "")


async def test_a_crash_while_something_else_begins_takes_it_back_too_so_that_the_next_start_is_no_crash(
    tmp_path, monkeypatch, caplog
):
    went_back = []

    async def crash(process: main.ProcessResources, _reason: str) -> str:
        process.undo_log.add([UndoStep(lambda: went_back.append(True), NOT_CAUSED_BY_SWARM)])
        raise ZeroDivisionError

    monkeypatch.setattr(main, "_contribute", crash)
    code, (*_, failed) = await ran(tmp_path)
    assert (code, went_back) == (1, [True])
    assert isinstance(failed, events.EngineFailed)
    assert "ZeroDivisionError" in failed.title
    said_as_error(caplog, failed)


class PanicException(BaseException):
    """Like a panic of a Rust library under pyo3, which is no Exception."""


@pytest.mark.parametrize("place", ["in the loop", "in the policy thread"])
async def test_a_panic_of_a_library_is_one_crash_too(tmp_path, monkeypatch, caplog, place):
    def panic() -> None:
        raise PanicException("index out of bounds")

    async def contribute(*_: object) -> str:
        if place == "in the policy thread":
            await asyncio.get_running_loop().run_in_executor(None, panic)
        panic()
        return ""

    monkeypatch.setattr(main, "_contribute", contribute)
    code, (*_, failed) = await ran(tmp_path)
    assert code == 1
    assert failed.title == "The engine met an unexpected error: PanicException."
    assert "index out of bounds" in failed.detail
    said_as_error(caplog, failed)


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit])
async def test_an_end_that_somebody_wants_is_no_crash(tmp_path, monkeypatch, end):
    def ended(_: object) -> None:
        raise end

    monkeypatch.setattr(main, "set_priority", ended)
    with pytest.raises(end):
        await ran(tmp_path)
    (record,) = paths.Home(tmp_path).events.glob("*.jsonl")
    assert not any(isinstance(event, events.EngineFailed) for event in json_lines.recording(record))


async def test_a_service_that_cannot_have_its_folder_says_so_where_its_operator_looks(tmp_path):
    home = paths.Home(tmp_path).prepare()
    claimed = server.claim_home(home)
    engine = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "waggle", "engine", "--home", str(tmp_path), stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(waggle.__file__).parents[1])},
    )  # fmt: skip
    _, errors = await engine.communicate()
    claimed.release()
    assert engine.returncode == 1
    assert b"Another engine, or a seed, is running for this folder." in errors


async def test_a_folder_that_takes_no_record_is_said_to_be_so(tmp_path, monkeypatch, caplog):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(main, "EventPublisher", full)
    code, (failed,) = await ran(tmp_path)
    assert (code, failed.title) == (1, f"The folder {tmp_path} cannot be written: No space left on device.")
    said_as_error(caplog, failed)


async def test_a_fault_beside_a_preparation_that_it_ends_is_told(process, monkeypatch):
    def blind() -> None:
        raise OSError(24, "Too many open files")

    async def prepare(_home: object, _chosen: object, host: NodeHost, *_: object) -> None:
        await host.stopped.wait()
        raise Stopped

    monkeypatch.setattr(computer_watch, "SensorReader", blind)
    monkeypatch.setattr(main, "prepare_node", prepare)
    with pytest.raises(OSError, match="Too many open files"):
        await main._contribute(process, "")


async def test_a_model_that_cannot_be_opened_at_a_start_is_left_for_the_one_of_before(tmp_path, monkeypatch):
    trained = []

    async def contribute(process: main.ProcessResources, _reason: str) -> str:
        trained.append(process.live_settings.now.model.folder)
        if process.live_settings.now.model.folder:
            raise ModelError("The model in /nowhere has too many layers.", "Choose another.")
        return ""

    monkeypatch.setattr(main, "_contribute", contribute)
    (tmp_path / "models.json").write_bytes(
        msgspec.json.encode(model_source.ModelRecord(folder="", name="", before=ModelSettings()))
    )
    (tmp_path / "settings.toml").write_text("[model]\nfolder = '/nowhere'\n")
    code, sent = await ran(tmp_path)
    (warned,) = [event for event in sent if isinstance(event, events.Warned)]
    assert code == 0
    assert trained == ["/nowhere", ""]
    assert warned.title == "The model in /nowhere has too many layers."
    assert warned.advice == "The starter is trained instead. Choose another on the page Models."
    assert settings.read(tmp_path / "settings.toml").model == ModelSettings(), "there is no line to be removed"


async def test_a_lifecycle_that_failed_decides_nothing_when_its_pause_ends(process, monkeypatch):
    backoffs = []

    class Watched(Lifecycle):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)
            backoffs.append(self)

    async def prepare(*_: object, **__: object) -> None:
        assert not backoffs[0]._timer.cancelled()
        raise ModelMissing("The hub has lost a file of it.")

    monkeypatch.setattr(main, "Lifecycle", Watched)
    monkeypatch.setattr(main, "prepare_node", prepare)
    now = time.time()
    process.pause_request.save(Wishes(paused=True, until=now + 3600, asked_at=now))
    process.undo_log.add([UndoStep(nothing)])
    assert await main._contribute_or_undo(process, ""), "it goes back"
    assert backoffs[0].stopped.is_set()
    assert backoffs[0]._timer.cancelled()
    assert process.pause_request.wishes.paused, "which holds for the next one"


@pytest.mark.skipif(not system_kills(), reason="this system does not count what it killed")
@pytest.mark.parametrize(
    ("fitted", "advice"), [(8, main.SMALLER_PARTS_ADVICE), (16, "Choose a smaller model, or close other programs.")]
)
async def test_after_a_kill_for_want_of_memory_smaller_parts_are_promised_only_where_there_are_any(
    tmp_path, monkeypatch, fitted, advice
):
    boot, _, count = system_kills().rpartition(":")
    backoff = MemoryBackoff(paths.Home(tmp_path), f"{boot}:{int(count) - 1}")
    backoff.use_model("owner/large")
    backoff.parts_for(fitted)

    async def end(*_: object) -> str:
        return ""

    monkeypatch.setattr(main, "_contribute", end)
    code, sent = await ran(tmp_path)
    warned = [event for event in sent if isinstance(event, events.Warned)]
    assert code == 0
    assert [warning.advice for warning in warned if "was ended by the system" in warning.title] == [advice]


async def test_what_is_worked_beside_the_rounds_uses_up_the_energy_of_a_day_too(process, tmp_path):
    publisher, backoff = process.publisher, process.backoff
    live_settings = LiveSettings(process.home.settings, ("when.kwh_a_day=0.01", "computer.watts=100"), publisher)
    seconds, decided = [0.0], asyncio.Event()
    lifecycle = Lifecycle(publisher, live_settings.now.when)
    lifecycle.gate = PauseGate(nothing, clock=lambda: seconds[0])
    lifecycle.gate()
    seconds[0] = 400.0
    publisher.attach(lambda line: decided.set())
    watch = asyncio.ensure_future(computer_watch.watch_computer(lifecycle, live_settings, publisher, backoff))
    async with asyncio.timeout(60):
        await decided.wait()
    await main._cancel(watch)
    lifecycle.stop()
    assert publisher.state.decision.reason.startswith("Today's energy is used up: 0.01 of 0.01 kWh")
