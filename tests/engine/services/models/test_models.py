"""Test the choice of models: each keeps what it learned, and a choice that fails is refused or undone."""

import json
import shutil
from pathlib import Path

import pytest
from filelock import FileLock

import system_folders
from waggle.core import paths, settings
from waggle.core.errors import EngineError, ExportError, HistoryError, MemoryShort, ModelError, ModelMissing
from waggle.core.settings import ModelSettings, Settings
from waggle.engine.runtime import model_source
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.live_settings import LiveSettings
from waggle.engine.services.models.choice_download import ChoiceDownload
from waggle.engine.services.models.models import Measured, ModelService, undo_steps
from waggle.engine.system.opening_note import OpeningNote
from waggle.models.memory_fit import DeviceCapacity
from waggle.models.storage import checkpoint, hub_cache
from waggle.models.torch.policy import TorchPolicy
from waggle.protocol import commands


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv(system_folders.CACHE, str(tmp_path / "cache"))
    return paths.Home(tmp_path / "home").prepare()


@pytest.fixture
def changes():
    return []


@pytest.fixture
def change(changes):
    """Changes settings, and returns how to undo that."""

    def apply(values):
        changes.append(values)
        return lambda: changes.append("taken back")

    return apply


@pytest.fixture
def starts():
    """The reasons for a restart, each with its undo."""
    return []


@pytest.fixture
async def publisher(home):
    publisher = EventPublisher(home.events)
    yield publisher
    publisher.close()


@pytest.fixture
async def download(publisher):
    download = ChoiceDownload(publisher)
    yield download
    download.cancel()


@pytest.fixture
def models(home, change, starts, download):
    service = ModelService(home, Settings(), change, lambda reason, back: starts.append((reason, back)), download)
    download.attach(service)
    return service


def no_restart(_reason: str, _back: object) -> None:
    pass


def downloaded(name: str) -> None:
    """A model of the hub that is here: the starter's files under another name."""
    shutil.copytree(paths.starter(), paths.models() / name)


def usable(name: str) -> Path:
    """A downloaded model that can be opened."""
    return Path(shutil.copytree(paths.starter(), paths.models() / name))


async def test_the_starter_and_what_was_downloaded_are_listed(models, home):
    downloaded("Qwen/Tiny")
    (home.model.checkpoints / "r00000007").mkdir()
    (models_event,) = await models.obey(commands.ListModels(id="1"))
    assert [(model.kind, model.name, model.active) for model in models_event.models] == [
        ("starter", "", True),
        ("hub", "Qwen/Tiny", False),
    ]
    assert models_event.models[0].rounds == 7
    assert models_event.models[0].bytes > 1e6


async def test_a_model_that_another_engine_uses_is_not_removed(models):
    downloaded("Qwen/Tiny")
    folder = paths.models() / "Qwen/Tiny"
    with hub_cache.hold(folder), hub_cache.hold(folder), pytest.raises(ModelError, match="in use by another engine"):
        await models.obey(commands.RemoveModel(id="1", name="Qwen/Tiny"))
    assert (folder / "config.json").exists()
    await models.obey(commands.RemoveModel(id="2", name="Qwen/Tiny"))
    assert list(folder.parent.iterdir()) == []


async def test_what_another_program_downloads_now_is_not_removed_under_it(models):
    half = paths.models() / "Qwen/.downloading-Tiny"
    half.mkdir(parents=True)
    with FileLock(hub_cache.lock_of(half)), pytest.raises(ModelError, match="being downloaded by another program"):
        await models.obey(commands.RemoveModel(id="1", name="Qwen/Tiny"))
    assert half.is_dir()
    await models.obey(commands.RemoveModel(id="2", name="Qwen/Tiny"))
    assert not half.exists()


async def test_a_download_that_ends_while_it_is_counted_is_no_obstacle(models, monkeypatch):
    downloaded("Qwen/Tiny")
    part, stat = paths.models() / "Qwen/Tiny/model.part", Path.stat
    before = sum(path.stat().st_size for path in part.parent.iterdir())
    part.write_bytes(b"12345")

    def moved_away(path: Path, **how: bool) -> object:
        status = stat(path, **how)
        if path == part:
            path.unlink()
        return status

    monkeypatch.setattr(Path, "stat", moved_away)
    (models_event,) = await models.obey(commands.ListModels(id="1"))
    assert models_event.models[1].bytes == before + len(b"12345")


async def test_each_model_says_whether_it_fits_this_computer(home, change, download):
    machine = DeviceCapacity(free=int(8e9), speeds={"float32": 5e10, "bfloat16": 5e10})
    downloaded("Qwen/Tiny")
    (paths.models() / "Qwen/Tiny/config.json").write_text("{}")
    big = paths.models() / "Qwen" / "Big"
    big.mkdir()
    shape = {"model_type": "qwen2", "hidden_size": 8192, "num_hidden_layers": 80, "intermediate_size": 29568,
             "vocab_size": 152_064, "num_attention_heads": 64, "num_key_value_heads": 8}  # fmt: skip
    (big / "config.json").write_text(json.dumps(shape))
    models = ModelService(home, Settings(), change, no_restart, download, Measured(lambda: machine))
    (models_event,) = await models.obey(commands.ListModels(id="1"))
    fits = {model.name: model.fit for model in models_event.models}
    assert fits[""].startswith("Fits: about ")
    assert fits["Qwen/Tiny"] == "", "nothing is known of it"
    assert fits["Qwen/Big"].startswith("This model does not fit: it needs ")
    assert models_event.suggested[0].fit.startswith("Fits: about ")
    assert [offer.fits for offer in models_event.suggested][:1] == [True]
    assert not models_event.suggested[-1].fits


async def test_a_chosen_model_trains_in_a_place_of_its_own_and_the_first_one_keeps_its(models, home, changes, starts):
    usable("Qwen/Tiny")
    await models.obey(commands.ChooseModel(id="1", name="Qwen/Tiny"))
    assert changes == [{"model.name": "Qwen/Tiny", "model.folder": None}]
    assert starts[0][0] == "Going on with Qwen/Tiny."
    assert (
        model_source.home_of(home, ModelSettings(name="Qwen/Tiny")).model.checkpoints
        == home.root / "models" / "Qwen--Tiny" / "checkpoints"
    )
    assert model_source.home_of(home, ModelSettings()).model.checkpoints == home.model.checkpoints
    starts[0][1]()
    assert changes[1:] == ["taken back"]


async def test_whoever_chooses_otherwise_before_the_engine_has_started_again_keeps_the_model_of_now(models, changes, starts):
    usable("Qwen/Tiny")
    await models.obey(commands.ChooseModel(id="1", name="Qwen/Tiny"))
    await models.obey(commands.ChooseModel(id="2"))
    assert changes[-1] == {"model.name": None, "model.folder": None}
    assert starts[-1][0] == "Going on with the starter."
    with pytest.raises(EngineError, match="trained already"):
        await models.obey(commands.ChooseModel(id="3"))


@pytest.mark.parametrize("how", [{"training": "lora"}, {"precision": "bfloat16"}])
async def test_a_model_is_the_one_that_is_trained_however_it_is_trained(home, change, how, download):
    (home.model.checkpoints / "r00000007").mkdir()
    downloaded("Qwen/Tiny")
    for name, rounds in (("", [7, 0]), ("Qwen/Tiny", [0, 7])):
        training = ModelService(home, Settings(model=ModelSettings(name=name, **how)), change, no_restart, download)
        (models_event,) = await training.obey(commands.ListModels(id="1"))
        assert [model.name for model in models_event.models] == ["", "Qwen/Tiny"]
        assert [model.active for model in models_event.models] == [name == "", name != ""]
        assert [model.rounds for model in models_event.models] == rounds
        with pytest.raises(EngineError, match="trained already"):
            await training.obey(commands.ChooseModel(id="1", name=name))


def test_where_nothing_was_ever_switched_the_home_is_as_it_always_was(home):
    assert model_source.home_of(home, ModelSettings(name="Qwen/Tiny")) == home


def gone_on_with(home: paths.Home, chosen: ModelSettings) -> int:
    """Start like the engine, play a round and save it; return the round of the start."""
    home = model_source.home_of(home, chosen).prepare()
    folder = model_source.folder_of(chosen)
    policy, base = TorchPolicy(folder), checkpoint.base_of(folder)
    saved, _ = checkpoint.load_newest(home.model.checkpoints, policy, base)
    number = saved.round if saved else 0
    checkpoint.save(
        home.model.checkpoints,
        policy,
        checkpoint.CheckpointState(round=number + 1, step=1, epoch=1, charter="ab" * 32, base=base),
    )
    return number


@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize("order", [("", "bees/tiny"), ("bees/tiny", "")])
async def test_a_model_set_by_its_name_keeps_what_it_learned_beside_what_another_one_did(home, change, written, order, download):
    """`written`: whether models.json says whose the home is, or the checkpoints alone."""
    tiny = paths.models() / "bees/tiny"
    shutil.copytree(paths.starter(), tiny)
    (tiny / "tokenizer.json").write_bytes(b" " + (paths.starter() / "tokenizer.json").read_bytes())
    first, second = (ModelSettings(name=name) for name in order)
    assert gone_on_with(home, first) == 0
    if written:
        ModelService(model_source.home_of(home, first), Settings(model=first), change, no_restart, download).mark_played()
    assert [gone_on_with(home, model) for model in (second, first, second)] == [0, 1, 1]
    ModelService(model_source.home_of(home, second), Settings(model=second), change, no_restart, download).mark_played()
    known = model_source.read_record(home)
    assert (known and known.name) == (first.name if written else None), (
        "a model that has a place of its own says nothing of the home"
    )
    assert [gone_on_with(home, model) for model in (first, second)] == [2, 2]


async def test_a_model_that_is_still_to_be_downloaded_gets_no_place_where_another_one_has_learned(home, change, download):
    assert gone_on_with(home, ModelSettings()) == 0
    assert model_source.home_of(home, ModelSettings(name="bees/tiny")).model_root == home.root / "models" / "bees--tiny"
    ModelService(home, Settings(), change, no_restart, download).mark_played()
    shutil.rmtree(home.model.checkpoints)
    assert model_source.home_of(home, ModelSettings(name="bees/tiny")).model_root == home.root / "models" / "bees--tiny"


def begun(home: paths.Home, choices: LiveSettings, download: ChoiceDownload) -> None:
    """Play a round with the chosen model."""
    own = model_source.home_of(home, choices.now.model)
    ModelService(own, choices.now, choices.change, no_restart, download).mark_played()


async def test_a_model_that_was_chosen_and_cannot_be_opened_at_a_start_is_left_for_the_one_that_played_last(
    home, publisher, download
):
    choices = LiveSettings(home.settings, (), publisher)
    assert undo_steps(home, choices.now.model, choices.change) == [], "nothing was ever played"
    begun(home, choices, download)
    assert undo_steps(home, choices.now.model, choices.change) == []
    choices.change({"model.folder": "/nowhere", "model.training": "lora"})
    choices_after = LiveSettings(home.settings, (), publisher)  # as after a start in between
    (step,) = undo_steps(home, choices_after.now.model, choices_after.change)
    assert issubclass(HistoryError, step.unrelated), "a full disk is no fault of the model"
    step.undo()
    assert settings.read(home.settings).model == ModelSettings(training="lora")
    downloaded("Qwen/Tiny")
    choices_after.change({"model.name": "Qwen/Tiny"})
    begun(home, choices_after, download)
    assert undo_steps(home, choices_after.now.model, choices_after.change) == [], "another way of training it is no other model"
    choices = LiveSettings(home.settings, ("model.name=Qwen/Other",), publisher)
    (step,) = undo_steps(home, choices.now.model, choices.change)
    step.undo()
    assert choices.now.model.name == "Qwen/Tiny"
    advice = step.advice(ModelMissing("There is no model in /nowhere.", "Check model.folder in the settings."))
    assert advice == "Qwen/Tiny is trained instead. Choose another on the page Models."


async def test_a_model_that_has_played_and_is_gone_is_left_for_no_other(home, publisher, download):
    downloaded("Qwen/Tiny")
    choices = LiveSettings(home.settings, ("model.name=Qwen/Tiny",), publisher)
    begun(home, choices, download)
    (paths.models() / "Qwen/Tiny").rename(paths.models() / "Qwen/Moved")
    assert undo_steps(home, choices.now.model, choices.change) == []


@pytest.mark.parametrize(
    ("model", "error", "title"),
    [
        ({}, EngineError, "trained already"),
        ({"name": "no name"}, ModelError, "is not the name of a model"),
        ({"folder": "/nowhere"}, ModelError, "There is no model in .nowhere"),
    ],
)
async def test_what_cannot_be_trained_is_not_chosen(models, changes, starts, model, error, title):
    with pytest.raises(error, match=title):
        await models.obey(commands.ChooseModel(id="1", **model))
    assert (changes, starts) == ([], [])


async def test_a_model_that_cannot_be_opened_is_refused_before_the_one_of_now_is_let_go(models, home, changes, starts, tmp_path):
    folder = usable("Qwen/Tiny")
    words = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    doubling = {"type": "Replace", "pattern": {"String": "e"}, "content": "ee"}
    (folder / "tokenizer.json").write_text(
        json.dumps(words | {"normalizer": {"type": "Sequence", "normalizers": [doubling] * 600}})
    )
    for model in ({"name": "Qwen/Tiny"}, {"folder": str(folder)}):
        with pytest.raises(ModelError, match="times as long"):
            await models.obey(commands.ChooseModel(id="1", **model))
    assert (changes, starts) == ([], [])
    assert model_source.read_record(home) is None


async def test_a_model_whose_opening_ended_the_engine_is_left_until_it_is_chosen_once_more(home, publisher, download):
    folder, note = usable("Qwen/Tiny"), OpeningNote(home)
    choices = LiveSettings(home.settings, ("model.name=Qwen/Tiny",), publisher)
    opening = note.opening(choices.now.model, folder)
    opening.__enter__()
    note.start(retry=False)
    (step,) = undo_steps(home, choices.now.model, choices.change)
    assert (issubclass(MemoryShort, step.unrelated), issubclass(ModelMissing, step.unrelated)) == (True, False)
    step.undo()
    assert choices.now.model == ModelSettings()
    assert step.advice(ModelMissing("It ended.")).startswith("The starter is trained instead. Choose another on ")
    assert step.advice(ModelMissing("It ended.")).endswith("What this model has learned is kept.")
    service = ModelService(home, choices.now, choices.change, no_restart, download)
    await service.obey(commands.ChooseModel(id="1", name="Qwen/Tiny"))
    assert not note.has_failed(choices.now.model)
    assert undo_steps(home, choices.now.model, choices.change) == []


async def test_a_model_whose_opening_ended_the_engine_is_left_for_the_one_before(home, publisher, download):
    choices = LiveSettings(home.settings, (), publisher)
    usable("Qwen/Good")
    choices.change({"model.name": "Qwen/Good"})
    begun(home, choices, download)
    choices.change({"model.name": "Qwen/Tiny"})
    opening = OpeningNote(home).opening(choices.now.model, usable("Qwen/Tiny"))
    opening.__enter__()
    OpeningNote(home).start(retry=False)
    (step,) = undo_steps(home, choices.now.model, choices.change)
    step.undo()
    assert choices.now.model.name == "Qwen/Good"


async def test_a_model_is_removed_but_not_the_one_that_is_trained(home, change, download):
    downloaded("Qwen/Tiny")
    downloaded("Qwen/Other")
    training = ModelService(home, Settings(model=ModelSettings(name="Qwen/Tiny")), change, no_restart, download)
    with pytest.raises(EngineError, match="is trained now"):
        await training.obey(commands.RemoveModel(id="1", name="Qwen/Tiny"))
    (models_event,) = await training.obey(commands.RemoveModel(id="2", name="Qwen/Other"))
    assert [model.name for model in models_event.models] == ["", "Qwen/Tiny"]


async def test_an_export_needs_something_trained_and_a_place_that_is_named_whole(models, tmp_path):
    with pytest.raises(ExportError, match="whole path"):
        await models.obey(commands.ExportModel(id="1", path="model"))
