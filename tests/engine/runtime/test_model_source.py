"""Test how the chosen model is found. For downloads, see tests/models/storage and tests/end_to_end."""

import asyncio
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from huggingface_hub import constants

import system_folders
from models.local_hub import local_hub, no_hub
from waggle.core import paths, resumable_download
from waggle.core.errors import HubUnavailable, ModelError, ModelMissing, Stopped
from waggle.core.resumable_download import PIECE, TRIES
from waggle.core.settings import ModelSettings
from waggle.engine.runtime import model_source
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.models.storage import hub_download
from waggle.protocol import events, json_lines
from waggle.protocol.events_models import ModelUnavailable


def reports(publisher: EventPublisher) -> model_source.Report:
    return partial(model_source.report_start, publisher, "bees/tiny")


async def test_what_is_on_this_computer_is_taken_without_a_word(tmp_path, monkeypatch):
    monkeypatch.setenv(system_folders.CACHE, str(tmp_path / "cache"))
    here = paths.models() / "bees/tiny"
    here.mkdir(parents=True)
    publisher = EventPublisher(tmp_path)
    for chosen, folder in (
        (ModelSettings(), paths.starter()),
        (ModelSettings(folder=str(paths.starter())), paths.starter()),
        (ModelSettings(name="bees/tiny"), here),
    ):
        assert await model_source.find_model(chosen, publisher, PauseGate(lambda: None), asyncio.Event()) == folder
    assert publisher.state.seq == 0
    publisher.close()


@pytest.mark.parametrize(
    ("chosen", "title"),
    [
        (ModelSettings(folder="/nowhere"), f"There is no model in {Path('/nowhere')}."),
        (ModelSettings(name="bees/none"), "bees/none is not on this computer yet."),
        (ModelSettings(name="bees"), "bees is not the name of a model."),
    ],
)
def test_a_model_that_is_not_here_is_named(chosen, title, tmp_path, monkeypatch):
    monkeypatch.setenv(system_folders.CACHE, str(tmp_path))
    with pytest.raises(ModelError) as caught:
        model_source.folder_of(chosen)
    assert caught.value.title == title


@pytest.mark.parametrize(
    ("elapsed", "came", "missing", "seconds"),
    [(10.0, 50, 100, 20.0), (10.0, 0, 100, None), (10.0, 1, 100, None), (0.5, 2, 100, 25.0)],
)
def test_how_long_it_takes_is_said_once_a_hundredth_has_come(elapsed, came, missing, seconds):
    assert model_source.seconds_left(elapsed, came, missing) == seconds


async def test_whatever_a_download_ends_with_is_heard():
    class Panic(BaseException):
        """Like a panic of a Rust library."""

    def work():
        raise Panic

    with pytest.raises(Panic):
        await asyncio.wait_for(model_source._start_thread(work), 60.0)


async def test_a_pause_is_no_part_of_the_pace_of_a_download(tmp_path):
    publisher, now = EventPublisher(tmp_path), [0.0]

    def wait_at_gate() -> None:
        now[0] += 8 * 3600.0
        threading.Thread(target=gate.open).start()

    gate = PauseGate(wait_at_gate)
    progress = model_source._Progress(
        partial(model_source.report_start, publisher, "bees/tiny"), gate, lambda: 0.0, lambda: now[0]
    )
    for here in (0, 20, 40):
        now[0] += 10.0
        if here == 20:
            gate.close()
        progress(here, 100)
    await asyncio.sleep(0)  # what was told soon is told
    assert publisher.state.downloading.seconds_left == 30.0
    publisher.close()


async def test_neither_is_a_night_in_which_the_hub_was_away_or_the_computer_asleep(tmp_path):
    publisher, now = EventPublisher(tmp_path), [0.0]
    progress = model_source._Progress(
        partial(model_source.report_start, publisher, "bees/tiny"), PauseGate(lambda: None), lambda: 0.0, lambda: now[0]
    )
    for here in (0, 20, 40):
        now[0] += 10.0 if here < 40 else 8 * 3600.0
        progress(here, 100)
    now[0] += 10.0
    progress(60, 100)
    await asyncio.sleep(0)  # what was told soon is told
    assert publisher.state.downloading.seconds_left == pytest.approx(40 * 20 / 60)
    publisher.close()


async def test_a_download_of_many_pieces_is_told_in_few_events(tmp_path):
    publisher = EventPublisher(tmp_path)
    progress = model_source._Progress(
        partial(model_source.report_start, publisher, "bees/tiny"), PauseGate(lambda: None), lambda: 0.0
    )
    for here in range(1, 100_001):
        progress(here, 100_000)
    await asyncio.sleep(0)  # what was told soon is told
    assert publisher.state.seq < 1000
    assert publisher.state.downloading.done >= 99_000
    publisher.close()


@pytest.mark.parametrize("is_away", [False, True])
async def test_a_download_that_was_left_tells_nothing_more_when_the_network_goes_on(tmp_path, monkeypatch, is_away):
    stalls, goes_on = threading.Event(), threading.Event()

    def fetch(_name, _cache, progress, **_options):
        progress(1, 100)
        stalls.set()
        assert goes_on.wait(60)
        if is_away:
            raise HubUnavailable("Hugging Face cannot be reached.")
        progress(100, 100)

    monkeypatch.setenv(system_folders.CACHE, str(tmp_path / "cache"))
    monkeypatch.setattr(hub_download, "fetch", fetch)
    publisher = EventPublisher(tmp_path)
    life = Life(publisher, patient=True)
    assert await asyncio.to_thread(stalls.wait, 60)
    await life.end()
    seq_before = publisher.state.seq
    goes_on.set()
    await asyncio.to_thread(
        lambda: model_source.DOWNLOAD_LOCKS["bees/tiny"].acquire() and model_source.DOWNLOAD_LOCKS["bees/tiny"].release()
    )  # it has ended
    await asyncio.sleep(0)  # what was told soon is told
    assert (publisher.state.seq, life.warnings) == (seq_before, [])
    publisher.close()


@pytest.fixture
async def source(tmp_path, monkeypatch):
    """A hub with one model, which holds back the second half of the weights until it is released."""
    monkeypatch.setenv(system_folders.CACHE, str(tmp_path / "cache"))
    with local_hub() as hub:
        monkeypatch.setattr(constants, "ENDPOINT", hub.endpoint)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", f"{hub.endpoint}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        )
        hub.add("bees/tiny", paths.starter())
        hub.hold["model.safetensors"] = 4 * PIECE
        yield hub


class Life:
    """One run of an engine, as far as it looks for its model. The publisher outlives it."""

    def __init__(self, publisher: EventPublisher, limit: float = 0.0, *, patient: bool = False) -> None:
        self.waits, self.stopped, self.came, self.limit = threading.Event(), asyncio.Event(), asyncio.Event(), limit
        self.warned, self.warnings = asyncio.Event(), list[events.Warned | ModelUnavailable]()
        self.gate = PauseGate(self.waits.set)
        self._small = sum(
            (paths.starter() / name).stat().st_size for name in hub_download.WORDS if (paths.starter() / name).is_file()
        )
        publisher.attach(self._hear)
        chosen = ModelSettings(name="bees/tiny")
        finding = model_source.find_model(chosen, publisher, self.gate, self.stopped, limit=lambda: self.limit, patient=patient)
        self.task = asyncio.ensure_future(finding)

    def _hear(self, line: bytes) -> None:
        event = json_lines.event(line)
        if isinstance(event, events.Downloading) and event.done >= (0 if self.limit else self._small + 4 * PIECE):
            self.came.set()
        if isinstance(event, events.Warned | ModelUnavailable):
            self.warnings.append(event)
            self.warned.set()

    async def end(self) -> None:
        self.stopped.set()
        self.gate.stop()
        async with asyncio.timeout(60):
            with pytest.raises(Stopped):
                await self.task


async def test_an_engine_that_starts_again_in_the_middle_of_a_download_waits_until_the_first_has_left_it(tmp_path, source):
    publisher = EventPublisher(tmp_path)
    first = Life(publisher)
    await asyncio.wait_for(first.came.wait(), 60)
    await first.end()
    second = Life(publisher)
    done, _ = await asyncio.wait({second.task}, timeout=0.5)
    assert not done, "the hub says nothing, so that the first download is still there"
    await second.end()
    third = Life(publisher)
    source.released.set()
    folder = await asyncio.wait_for(third.task, 60)
    assert (folder / "model.safetensors").read_bytes() == source.repositories["bees/tiny"]["model.safetensors"]
    await asyncio.sleep(0)  # what was told soon is told
    publisher.close()


async def test_a_download_is_held_to_the_traffic_that_is_allowed_now_and_can_still_be_paused_and_stopped(tmp_path, source):
    publisher = EventPublisher(tmp_path)
    source.released.set()
    stopped = Life(publisher, limit=1.0)
    await asyncio.wait_for(stopped.came.wait(), 60)
    await stopped.end()
    life = Life(publisher, limit=1.0)
    await asyncio.wait_for(life.came.wait(), 60)
    done, _ = await asyncio.wait({life.task}, timeout=0.5)
    assert not done, "all of it is there in less time"
    life.gate.close()
    assert await asyncio.to_thread(life.waits.wait, 60)
    life.gate.open()
    life.limit = 0.0
    await asyncio.wait_for(life.task, 60)
    await asyncio.sleep(0)  # what was told soon is told
    publisher.close()


@pytest.fixture
def soon(monkeypatch):
    """Shorten all waits."""
    monkeypatch.setattr(resumable_download.time, "sleep", lambda _seconds: None)
    monkeypatch.setattr(model_source, "MAX_REST_SECONDS", 0.001)


async def test_a_download_goes_on_by_itself_however_often_the_connection_is_gone_and_says_so_once(tmp_path, source, soon):
    publisher = EventPublisher(tmp_path)
    source.cut["model.safetensors"] = [PIECE] * (1 + 3 * TRIES)
    del source.hold["model.safetensors"]
    life = Life(publisher)
    folder = await asyncio.wait_for(life.task, 60)
    assert (folder / "model.safetensors").read_bytes() == source.repositories["bees/tiny"]["model.safetensors"]
    assert len(source.requests_for("cdn/bees/tiny/model.safetensors")) == 2 + 3 * TRIES
    await asyncio.sleep(0)  # what was told soon is told
    assert [(warning.title, warning.advice) for warning in life.warnings] == [
        ("Hugging Face cannot be reached, and bees/tiny is not fully downloaded.", "It is tried again by itself.")
    ]
    publisher.close()


async def test_a_hub_that_is_away_at_a_start_is_waited_for_and_the_wait_can_be_paused(
    tmp_path, source, soon, monkeypatch, caplog
):
    publisher, here = EventPublisher(tmp_path), constants.ENDPOINT
    source.released.set()
    with no_hub() as nowhere:
        monkeypatch.setattr(constants, "ENDPOINT", nowhere)
        life = Life(publisher, patient=True)
        await asyncio.wait_for(life.warned.wait(), 60)
        life.gate.close()
        assert await asyncio.to_thread(life.waits.wait, 60)
        monkeypatch.setattr(constants, "ENDPOINT", here)
        life.gate.open()
        await asyncio.wait_for(life.task, 60)
    await asyncio.sleep(0)  # what was told soon is told
    assert [warning.reason for warning in life.warnings] == [
        "Hugging Face cannot be reached, and bees/tiny is not fully downloaded."
    ]
    assert publisher.state.unavailable is None, "the download began"
    caplog.clear()  # the question is also on stderr
    publisher.close()


async def test_a_hub_that_stays_away_is_told_of_again(tmp_path, source, soon, monkeypatch, caplog):
    monkeypatch.setattr(model_source, "AWAY_REPORT_EVERY", 2)
    publisher = EventPublisher(tmp_path)
    with no_hub() as nowhere:
        monkeypatch.setattr(constants, "ENDPOINT", nowhere)
        life = Life(publisher, patient=True)
        async with asyncio.timeout(60):
            while len(life.warnings) < 2:
                await asyncio.sleep(0.01)
        await life.end()
    caplog.clear()  # the question is also on stderr
    publisher.close()


async def test_a_wait_for_the_hub_ends_with_the_engine_and_who_has_just_chosen_hears_at_once_that_it_is_away(
    tmp_path, source, soon, monkeypatch, caplog
):
    publisher = EventPublisher(tmp_path)
    with no_hub() as nowhere:
        monkeypatch.setattr(constants, "ENDPOINT", nowhere)
        waiting = Life(publisher, patient=True)
        await asyncio.wait_for(waiting.warned.wait(), 60)
        await waiting.end()
        with pytest.raises(ModelMissing, match="Hugging Face cannot be reached"):
            await asyncio.wait_for(Life(publisher).task, 60)
    caplog.clear()  # the question is also on stderr
    publisher.close()


async def test_in_the_long_run_no_more_comes_than_is_allowed(tmp_path):
    publisher = EventPublisher(tmp_path)
    progress = model_source._Progress(
        partial(model_source.report_start, publisher, "bees/tiny"), PauseGate(lambda: None), lambda: 1e6
    )
    began = time.monotonic()
    for here in range(0, 500_001, 50_000):
        await asyncio.to_thread(progress, here, 500_000)
    assert time.monotonic() - began > 0.49
    await asyncio.sleep(0)
    publisher.close()
