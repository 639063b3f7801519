"""Test that a chosen model is downloaded and checked while the present one is trained, and that a failed choice costs nothing."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from huggingface_hub import constants
from msgspec.structs import replace

import system_folders
from models import tokenizer_shelf
from models.gguf_files import of_transformers, quantised
from models.local_hub import Hub, local_hub, no_hub
from models.tiny_kinds import make_kind
from waggle.core import hub_token, paths, resumable_download
from waggle.core.errors import EngineError, ModelError
from waggle.core.resumable_download import PIECE
from waggle.core.settings import ModelSettings, Settings
from waggle.engine.runtime import model_source
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.services.models.choice_download import UNEXPECTED, ChoiceDownload
from waggle.engine.services.models.models import Measured, ModelService
from waggle.models.backend import open_policy
from waggle.models.memory_fit import DeviceCapacity
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.storage import gguf_export
from waggle.protocol import commands
from waggle.protocol.events_models import HubResults, ModelChoice, ModelList
from waggle.rl.batch import TokenizedGroup

NAME, WEIGHTS = "bees/tiny", "model.safetensors"
BIG = {"model_type": "qwen2", "hidden_size": 8192, "num_hidden_layers": 80, "intermediate_size": 29568,
       "vocab_size": 152_064, "num_attention_heads": 64, "num_key_value_heads": 8}  # fmt: skip
MACHINE = DeviceCapacity(free=int(8e9), speeds={"float32": 5e10, "bfloat16": 5e10})


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with local_hub() as local:
        local.add(NAME, paths.starter())
        monkeypatch.setattr(constants, "ENDPOINT", local.endpoint)
        files = f"{local.endpoint}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", files)
        yield local


class Engine:
    """The services of an engine, without one: what it publishes, and with which model it would restart."""

    def __init__(self, home: paths.Home) -> None:
        self.home, self.restarts, self.changes = home, list[str](), list[dict[str, object]]()
        self.publisher = EventPublisher(home.events)
        self.published: list[ModelChoice] = []
        self.news = asyncio.Event()
        publish = self.publisher.publish

        def keep(event: object) -> None:
            publish(event)  # type: ignore[arg-type]
            if isinstance(event, ModelChoice):
                self.published.append(event)
                self.news.set()

        self.publisher.publish = keep  # type: ignore[method-assign,assignment]
        self.download = ChoiceDownload(self.publisher)
        self.start()

    def start(self) -> None:
        """A service as after a restart."""
        self.service = ModelService(
            self.home, Settings(), self._change, lambda reason, _: self.restarts.append(reason), self.download,
            Measured(lambda: MACHINE),
        )  # fmt: skip
        self.download.attach(self.service)

    def _change(self, values: object) -> Callable[[], object]:
        self.changes.append(dict(values))  # type: ignore[call-overload]
        return lambda: None

    @property
    def current_choice(self) -> ModelChoice | None:
        choice = self.publisher.state.choice
        return replace(choice, seq=0, at=0.0) if choice else None

    async def choose(self, **model: str) -> None:
        await self.service.obey(commands.ChooseModel(id="1", **model))

    async def until(self, fits: Callable[[ModelChoice], bool]) -> ModelChoice:
        """The first event that fits, published from the beginning on."""
        async with asyncio.timeout(60):
            while True:
                self.news.clear()
                for event in self.published:
                    if fits(event):
                        return event
                await self.news.wait()


@pytest.fixture
async def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Engine]:
    monkeypatch.setenv(system_folders.CACHE, str(tmp_path / "cache"))
    monkeypatch.setattr(hub_token, "stored_token", lambda: None)  # not the keychain of whoever runs the test
    engine = Engine(paths.Home(tmp_path / "home").prepare())
    yield engine
    engine.download.cancel()
    engine.publisher.close()


def ended(event: ModelChoice) -> bool:
    return event.stage in ("ended", "failed")


def arrived(count: int) -> Callable[[ModelChoice], bool]:
    return lambda event: event.done >= count


async def test_the_present_model_is_let_go_only_once_the_chosen_one_is_here_and_checked(engine: Engine, hub: Hub) -> None:
    hub.hold[WEIGHTS] = 4 * PIECE
    await engine.choose(name=NAME)
    coming = await engine.until(arrived(4 * PIECE))
    assert (coming.name, coming.stage) == (NAME, "downloading")
    assert coming.total > coming.done
    assert engine.current_choice == coming
    assert engine.restarts == engine.changes == []
    hub.released.set()
    await engine.until(ended)
    assert [event.stage for event in engine.published][-2:] == ["checking", "ended"]
    assert engine.restarts == [f"Going on with {NAME}."]
    assert engine.changes == [{"model.name": NAME, "model.folder": None}]
    assert engine.current_choice is None


async def test_a_cancelled_download_costs_nothing_and_goes_on_where_it_was(engine: Engine, hub: Hub) -> None:
    hub.hold[WEIGHTS] = 4 * PIECE
    await engine.choose(name=NAME)
    await engine.until(arrived(4 * PIECE))
    await engine.service.obey(commands.CancelChoice(id="2"))
    assert engine.published[-1].stage == "ended"
    assert engine.restarts == engine.changes == []
    hub.released.set()
    before = len(hub.requests)
    engine.published.clear()
    await engine.choose(name=NAME)
    await engine.until(ended)
    assert engine.restarts == [f"Going on with {NAME}."]
    (second_request,) = [request for request in hub.requests[before:] if "/cdn/" in request.path]
    assert second_request.range.startswith("bytes="), "what had arrived was kept"


@pytest.mark.parametrize(
    ("configuration", "title"),
    [(BIG, "does not fit"), ({"model_type": "vit"}, "cannot train models of the type vit"), ({}, "model")],
)
async def test_what_cannot_be_trained_here_is_refused_before_its_weights_come(
    engine: Engine, hub: Hub, configuration: dict[str, object], title: str
) -> None:
    hub.repositories[NAME]["config.json"] = json.dumps(configuration).encode()
    await engine.choose(name=NAME)
    failed = await engine.until(ended)
    assert failed.stage == "failed"
    assert title in failed.title
    assert engine.current_choice == failed, "the page shows it"
    assert not hub.requests_for(WEIGHTS)
    assert engine.restarts == engine.changes == []


async def test_weights_that_are_no_weights_are_noticed_before_the_present_model_is_let_go(engine: Engine, hub: Hub) -> None:
    hub.repositories[NAME][WEIGHTS] = b"no weights at all"
    await engine.choose(name=NAME)
    failed = await engine.until(ended)
    assert failed.stage == "failed"
    assert "cannot be read" in failed.title
    assert engine.restarts == engine.changes == []


async def test_a_hub_that_is_away_a_gated_model_and_one_that_is_not_there(engine: Engine, hub: Hub, monkeypatch) -> None:
    await engine.choose(name="bees/none")
    assert "Hugging Face has no model bees/none" in (await engine.until(ended)).title
    engine.published.clear()
    hub.gated.add(NAME)
    await engine.choose(name=NAME)
    assert "accepted its licence" in (await engine.until(ended)).title
    engine.published.clear()
    with no_hub() as nowhere:
        monkeypatch.setattr(constants, "ENDPOINT", nowhere)
        await engine.choose(name="bees/other")
        assert "cannot be reached" in (await engine.until(ended)).title
    assert engine.restarts == engine.changes == []


async def test_a_folder_is_checked_before_the_present_model_is_let_go(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(paths.starter(), folder)
    (folder / WEIGHTS).write_bytes((paths.starter() / WEIGHTS).read_bytes()[:-100])
    with pytest.raises(ModelError, match="cannot be read"):
        await engine.choose(folder=str(folder))
    shutil.copy(paths.starter() / WEIGHTS, folder)
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError):
        await engine.choose(folder=str(folder))
    assert engine.restarts == engine.changes == []
    shutil.copy(paths.starter() / "tokenizer.json", folder)
    await engine.choose(folder=str(folder))
    assert engine.restarts == ["Going on with mine."]


async def test_another_choice_takes_the_place_of_a_download(engine: Engine, hub: Hub) -> None:
    hub.add("bees/other", paths.starter())
    hub.hold[WEIGHTS] = PIECE
    await engine.choose(name=NAME)
    await engine.until(arrived(PIECE))
    with pytest.raises(EngineError, match="being downloaded already"):
        await engine.choose(name=NAME)
    with pytest.raises(EngineError, match="being downloaded"):
        await engine.service.obey(commands.RemoveModel(id="2", name=NAME))
    await engine.choose(name="bees/other")
    hub.released.set()
    await engine.until(lambda event: event.name == "bees/other" and ended(event))
    assert engine.restarts == ["Going on with bees/other."]


async def test_a_restart_of_the_engine_does_not_interrupt_a_download(engine: Engine, hub: Hub) -> None:
    hub.hold[WEIGHTS] = PIECE
    await engine.choose(name=NAME)
    await engine.until(arrived(PIECE))
    engine.download.detach()
    hub.released.set()
    await engine.until(lambda event: event.stage == "checking")
    assert engine.restarts == []
    engine.start()
    await engine.until(ended)
    assert engine.restarts == [f"Going on with {NAME}."]


async def test_a_hub_that_comes_back_in_the_middle_is_waited_for(engine: Engine, hub: Hub, monkeypatch) -> None:
    monkeypatch.setattr(resumable_download, "TRIES", 1)
    hub.cut[WEIGHTS] = [PIECE, 2 * PIECE, 10**9]
    await engine.choose(name=NAME)
    await engine.until(ended)
    assert engine.restarts == [f"Going on with {NAME}."]


async def test_a_search_says_what_cannot_fit(engine: Engine, hub: Hub) -> None:
    hub.facts[NAME] = {"safetensors": {"parameters": {"F32": 800_000}, "total": 800_000}, "downloads": 5}
    hub.repositories["bees/huge"] = {WEIGHTS: b""}
    hub.facts["bees/huge"] = {"safetensors": {"parameters": {"BF16": 70_000_000_000}, "total": 70_000_000_000}}
    (results,) = await engine.service.obey(commands.SearchModels(id="1", words="bees"))
    assert isinstance(results, HubResults)
    assert [(offer.name, offer.fits) for offer in results.models] == [(NAME, None), ("bees/huge", False)]
    needs = "it needs at least 140.4 GB of memory, and Waggle may use 6.8 GB."
    assert results.models[1].fit == f"This model does not fit: {needs}"
    (listing,) = await engine.service.obey(commands.ListModels(id="2"))
    assert isinstance(listing, ModelList)
    assert listing.suggested[0].fits


async def test_an_error_that_nobody_expected_is_a_failure_too_and_is_raised(
    engine: Engine, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise KeyError("a library of the keychain")

    monkeypatch.setattr(hub_token, "stored_token", broken)
    await engine.choose(name="bees/none")
    (task,) = engine.download._tasks
    with pytest.raises(KeyError, match="a library of the keychain"):  # else asyncio logs it
        await task
    assert (await engine.until(ended)).title == UNEXPECTED
    assert engine.restarts == engine.changes == []


async def test_a_chosen_gguf_file_is_converted_while_the_present_model_is_trained(engine: Engine, tmp_path: Path) -> None:
    file = a_gguf_file(tmp_path)
    await engine.choose(folder=str(file))
    assert (engine.published[0].folder, engine.published[0].stage) == (str(file), "converting")
    with pytest.raises(EngineError, match="being converted already"):
        await engine.choose(folder=str(file))
    assert engine.restarts == engine.changes == []
    async with asyncio.timeout(300):
        await asyncio.shield(next(iter(engine.download._tasks)))
    assert [event.stage for event in engine.published][-2:] == ["checking", "ended"], engine.published[-1]
    assert engine.changes == [{"model.name": None, "model.folder": str(file)}]
    assert engine.restarts == [f"Going on with {file.name}."]
    folder = model_source.folder_of(ModelSettings(folder=str(file)))
    assert folder.name == file.stem
    opened = open_policy(folder, device="cpu", threads=1, training=TrainingMode("full", "float32"))
    text = opened.tokenizer.conversation(["What is 2 + 3?"]).ids
    group = TokenizedGroup(text[:-4].astype(np.int32), (text[-4:].astype(np.int32),))
    ours = opened.policy.logprobs([group], 1.0)[0]
    with torch.no_grad():
        logits = of_transformers(file, rounded=True)(torch.tensor([text.tolist()])).logits[0].log_softmax(-1)
    theirs = [float(logits[place - 1, int(text[place])]) for place in range(len(text) - 4, len(text))]
    np.testing.assert_allclose(np.ravel(ours)[-4:], theirs, atol=1e-4)


async def test_a_gguf_file_that_cannot_be_converted_costs_nothing(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"GGUF" + b"\xff" * 200)
    await engine.choose(folder=str(tmp_path / "x.gguf"))
    async with asyncio.timeout(300):
        await asyncio.shield(next(iter(engine.download._tasks)))
    assert engine.published[-1].stage == "failed"
    assert engine.published[-1].title.startswith("x.gguf cannot be opened: it is of version 4294967295 of GGUF")
    assert engine.restarts == engine.changes == []


def a_gguf_file(folder: Path) -> Path:
    """A small random Qwen2 with a chat template, in blocks of 8 bits."""
    source = folder / "source"
    source.mkdir()
    tokenizer_shelf.put(source, "byte level")
    rows = len(tokenizer_shelf.of_transformers(source))
    stops = (source / "generation_config.json").read_bytes()
    make_kind("qwen2", source, vocab_size=rows)
    (source / "generation_config.json").write_bytes(stops)
    gguf_export.write(source, folder / "plain.gguf", "model")
    return quantised(folder / "plain.gguf", folder / "small.Q8_0.gguf", "Q8_0")
