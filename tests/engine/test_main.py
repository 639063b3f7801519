"""Test the engine's main: a choice that cannot start is undone, however it fails."""

import argparse
import asyncio
import logging
import os
import sys
from pathlib import Path

import msgspec
import pytest

import waggle
from waggle.core import paths, settings
from waggle.core.errors import ModelError
from waggle.core.settings import ModelSettings
from waggle.engine import contribution, main
from waggle.engine.control import server, stdio
from waggle.engine.runtime import model_source
from waggle.engine.runtime.undo_log import NOT_CAUSED_BY_SWARM, UndoStep
from waggle.engine.system.memory_backoff import MemoryBackoff, system_kills
from waggle.protocol import events, json_lines


@pytest.fixture(autouse=True)
def no_priority(monkeypatch) -> None:
    """A changed priority would last for all later tests."""
    monkeypatch.setattr(main, "set_priority", lambda _: True)


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


async def test_a_crash_while_something_else_begins_takes_it_back_too_so_that_the_next_start_is_no_crash(
    tmp_path, monkeypatch, caplog
):
    went_back = []

    async def crash(process: contribution.ProcessResources, _reason: str) -> str:
        process.undo_log.add([UndoStep(lambda: went_back.append(True), NOT_CAUSED_BY_SWARM)])
        raise ZeroDivisionError

    monkeypatch.setattr(contribution, "_play_until_stopped", crash)
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

    monkeypatch.setattr(contribution, "_play_until_stopped", contribute)
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


async def test_a_model_that_cannot_be_opened_at_a_start_is_left_for_the_one_of_before(tmp_path, monkeypatch):
    trained = []

    async def contribute(process: contribution.ProcessResources, _reason: str) -> str:
        trained.append(process.live_settings.now.model.folder)
        if process.live_settings.now.model.folder:
            raise ModelError("The model in /nowhere has too many layers.", "Choose another.")
        return ""

    monkeypatch.setattr(contribution, "_play_until_stopped", contribute)
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

    monkeypatch.setattr(contribution, "_play_until_stopped", end)
    code, sent = await ran(tmp_path)
    warned = [event for event in sent if isinstance(event, events.Warned)]
    assert code == 0
    assert [warning.advice for warning in warned if "the system ended it" in warning.title] == [advice]
