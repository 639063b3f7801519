"""A chosen model that cannot be had is asked about once and looked for again, whatever is wrong with it."""

import asyncio
import errno
import logging
import os
import shutil
from functools import partial

import pytest
from huggingface_hub import constants

import system_folders
from models.local_hub import local_hub
from waggle.core import paths
from waggle.core.errors import ModelMissing, Stopped
from waggle.core.settings import ModelSettings
from waggle.engine.runtime import model_source
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.engine.services.models import model_question
from waggle.engine.services.models.model_question import model_or_question
from waggle.protocol import json_lines
from waggle.protocol.events_models import ModelUnavailable


class Search:
    """An engine's search for its model, as far as a window hears of it."""

    def __init__(self, folder, chosen: ModelSettings) -> None:
        self.publisher, self.stopped, self.is_waiting = EventPublisher(folder), asyncio.Event(), asyncio.Event()
        self.questions: list[ModelUnavailable] = []
        self.publisher.attach(self._hear)
        gate = PauseGate(lambda: None)
        find = partial(model_source.find_model, chosen, self.publisher, gate, self.stopped, patient=True)
        self.task = asyncio.ensure_future(model_or_question(chosen, find, self.publisher, self.stopped))

    def _hear(self, line: bytes) -> None:
        event = json_lines.event(line)
        if isinstance(event, ModelUnavailable):
            self.questions.append(event)
            self.is_waiting.set()

    def close(self, caplog: pytest.LogCaptureFixture) -> None:
        """Check that each question is logged, as an engine without a window has no other way to ask."""
        self.publisher.close()
        messages = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
        assert [question.reason in message for question, message in zip(self.questions, messages, strict=True)]
        caplog.clear()


@pytest.fixture(autouse=True)
def often(tmp_path, monkeypatch):
    monkeypatch.setenv(system_folders.CACHE, str(tmp_path / "cache"))
    monkeypatch.setattr(model_question, "FOLDER_SECONDS", 0.01)
    monkeypatch.setattr(model_question, "HUB_SECONDS", 0.01)


async def test_a_model_that_the_hub_does_not_hand_out_is_asked_about_and_fetched_once_it_does(tmp_path, monkeypatch, caplog):
    with local_hub() as hub:
        monkeypatch.setattr(constants, "ENDPOINT", hub.endpoint)
        address = f"{hub.endpoint}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address)
        search = Search(tmp_path, ModelSettings(name="bees/tiny"))
        await asyncio.wait_for(search.is_waiting.wait(), 60)
        assert "bees/tiny" in search.questions[0].reason
        assert search.publisher.state.waits_for_choice
        hub.add("bees/tiny", paths.starter())
        folder = await asyncio.wait_for(search.task, 60)
    assert model_source.is_here("bees/tiny")
    assert (folder / "config.json").is_file()
    await asyncio.sleep(0)  # what was said soon is said
    assert len(search.questions) == 1
    assert not search.publisher.state.waits_for_choice
    search.close(caplog)


async def test_a_folder_that_is_put_back_in_parts_is_trained_once_it_is_whole(tmp_path, caplog):
    whole, folder = paths.starter(), tmp_path / "usb" / "mine"
    search = Search(tmp_path, ModelSettings(folder=str(folder)))
    await asyncio.wait_for(search.is_waiting.wait(), 60)
    search.is_waiting.clear()
    folder.mkdir(parents=True)
    shutil.copy(whole / "config.json", folder)
    await asyncio.wait_for(search.is_waiting.wait(), 60)
    assert search.questions[0].reason.startswith("There is no model in ")
    assert search.publisher.state.unavailable.reason != search.questions[0].reason, "what is missing now is said"
    shutil.copytree(whole, folder, dirs_exist_ok=True)
    assert await asyncio.wait_for(search.task, 60) == folder
    search.close(caplog)


async def test_a_disk_that_was_unplugged_while_mounted_is_asked_about_with_the_systems_words(tmp_path, monkeypatch, caplog):
    folder = tmp_path / "mine"
    shutil.copytree(paths.starter(), folder)
    real, gone = os.stat, {"yes": True}

    def stat(path, *arguments, **options):
        if gone["yes"] and str(path).startswith(str(folder)):
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "stat", stat)
    search = Search(tmp_path, ModelSettings(folder=str(folder)))
    await asyncio.wait_for(search.is_waiting.wait(), 60)
    assert search.questions[0].reason == f"The model in {folder} cannot be read: {os.strerror(errno.EIO)}."
    gone["yes"] = False
    assert await asyncio.wait_for(search.task, 60) == folder
    search.close(caplog)


async def test_the_question_ends_with_the_engine(tmp_path, caplog):
    search = Search(tmp_path, ModelSettings(folder=str(tmp_path / "nowhere")))
    await asyncio.wait_for(search.is_waiting.wait(), 60)
    search.stopped.set()
    with pytest.raises(Stopped):
        await asyncio.wait_for(search.task, 60)
    search.close(caplog)


async def test_a_fresh_choice_that_is_gone_again_fails_at_once_so_that_it_can_be_undone(tmp_path):
    chosen, publisher = ModelSettings(folder=str(tmp_path / "nowhere")), EventPublisher(tmp_path)
    with pytest.raises(ModelMissing, match="There is no model in"):
        await model_source.find_model(chosen, publisher, PauseGate(lambda: None), asyncio.Event())
    publisher.close()
