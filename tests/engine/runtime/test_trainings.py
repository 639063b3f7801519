"""A model's training is found again by who the model is, wherever its folder lies and however its path is spelled."""

import hashlib
import shutil
from pathlib import Path

import msgspec
import pytest

import system_folders
from models.storage.test_ownership import change_configuration, retrain, saved_round
from models.tiny_models import make_model
from waggle.core import paths
from waggle.core.errors import EngineError
from waggle.core.settings import ModelSettings
from waggle.engine.runtime import model_source
from waggle.engine.runtime.model_source import ModelRecord, home_of
from waggle.engine.services.models import export, training_choice
from waggle.models.storage import ownership


@pytest.fixture
def home(tmp_path, monkeypatch) -> paths.Home:
    """A home that trained the starter first."""
    monkeypatch.setenv(system_folders.CACHE, str(tmp_path / "cache"))
    monkeypatch.setenv(system_folders.HOME, str(tmp_path))
    home = paths.Home(tmp_path / "home").prepare()
    saved_round(home.model.checkpoints, paths.starter())
    (home.root / "models.json").write_bytes(msgspec.json.encode(ModelRecord(folder="", name="")))
    return home


@pytest.fixture
def model(tmp_path) -> Path:
    folder = make_model("llama", tmp_path / "models" / "mine")
    shutil.copyfile(paths.starter() / "tokenizer.json", folder / "tokenizer.json")
    return folder


def chosen(folder: object) -> ModelSettings:
    return ModelSettings(folder=str(folder))


def place_of(spelling: object) -> str:
    """The name that the training of a folder has after its path, as in 0.1.0."""
    return hashlib.sha256(str(spelling).encode()).hexdigest()[:16]


@pytest.fixture
def root(home, model) -> Path:
    """The training of the model, as it was placed by its path."""
    root = home.root / "models" / place_of(model)
    assert home_of(home, chosen(model)).model_root == root
    saved_round(root / "checkpoints", model)
    return root


def test_a_path_that_is_spelled_otherwise_leads_to_the_same_training(home, model, root, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(model, target_is_directory=True)
    spellings = (
        "~/models/mine",
        "models/mine",
        "./models/../models/mine",
        f"{model}/",
        tmp_path / "link",
        f"{model.parent}//mine",
    )
    assert {home_of(home, chosen(spelling)).model_root for spelling in spellings} == {root}


def test_so_does_a_folder_that_was_moved_renamed_or_copied_to_another_disk(home, model, root, tmp_path):
    moved = model.rename(tmp_path / "renamed")
    assert home_of(home, chosen(moved)).model_root == root
    change_configuration(moved)
    copy = shutil.copytree(moved, tmp_path / "disk" / "copy")
    assert home_of(home, chosen(copy)).model_root == root


@pytest.mark.parametrize("named", [True, False])
def test_a_training_of_an_earlier_version_is_found_too_as_long_as_every_byte_is_the_same(named, home, model, tmp_path):
    root = home.root / "models" / place_of(model)
    saved_round(root / "checkpoints", model, named=named)
    assert home_of(home, chosen(model)).model_root == root
    moved = model.rename(tmp_path / "renamed")
    assert home_of(home, chosen(moved)).model_root == root


def test_a_model_of_the_hub_and_the_same_in_a_folder_are_one_model(home, model, root):
    hub = paths.models() / "bees" / "tiny"
    assert home_of(home, ModelSettings(name="bees/tiny")).model_root == home.root / "models" / "bees--tiny", "not here yet"
    shutil.copytree(model, hub)
    assert home_of(home, ModelSettings(name="bees/tiny")).model_root == root


def test_the_first_training_of_a_home_is_found_under_another_path_as_well(home, tmp_path):
    copy = shutil.copytree(paths.starter(), tmp_path / "copy")
    assert home_of(home, chosen(copy)).model_root is None
    assert home_of(home, chosen(copy)).model == home.model


def test_two_trainings_of_one_model_that_an_earlier_version_began_stay_two(home, model, root, tmp_path):
    copy = shutil.copytree(model, tmp_path / "copy")
    second = home.root / "models" / place_of(copy)
    saved_round(second / "checkpoints", copy, number=9)
    assert home_of(home, chosen(model)).model_root == root
    assert home_of(home, chosen(copy)).model_root == second
    moved = copy.rename(tmp_path / "moved")
    assert home_of(home, chosen(moved)).model_root == second, "the one that was trained longer"


def test_other_weights_in_another_place_are_another_training_without_a_question(home, model, root, tmp_path):
    other = shutil.copytree(model, tmp_path / "other")
    retrain(other)
    place = home_of(home, chosen(other))
    assert place.model_root == home.root / "models" / place_of(other)
    assert ownership.other_model(place.model.checkpoints, other) is None


def test_a_training_that_begins_anew_stands_beside_the_old_one_which_is_found_again_with_its_files(home, model, root, tmp_path):
    before = shutil.copytree(model, tmp_path / "before")
    retrain(model)
    assert home_of(home, chosen(model)).model_root == root, "the place of which the question is"
    noted = training_choice.note(home, chosen(model), "anew")
    anew = home_of(home, chosen(model)).model_root
    assert anew not in (root, None)
    assert noted == anew / "checkpoints/model.json"
    saved_round(anew / "checkpoints", model, number=1)
    assert home_of(home, chosen(model)).model_root == anew
    assert home_of(home, chosen(before)).model_root == root
    shutil.rmtree(model)
    before.rename(model)
    assert home_of(home, chosen(model)).model_root == root
    assert export.newest_trained(home_of(home, chosen(model)), chosen(model)).saved.round == 7


def test_a_training_that_is_kept_goes_on_where_it_was(home, model, root):
    retrain(model)
    noted = training_choice.note(home, chosen(model), "keep")
    place = home_of(home, chosen(model))
    assert (noted, place.model_root) == (root / "checkpoints/model.json", root)
    assert ownership.other_model(place.model.checkpoints, model) is None
    with pytest.raises(EngineError, match="nothing to decide"):
        training_choice.note(home, chosen(model), "keep")
    noted.unlink()
    assert ownership.other_model(place.model.checkpoints, model) is not None, "an undone choice leaves the question open"


def test_what_does_not_fit_cannot_be_kept_and_can_begin_anew(home, model, root):
    shutil.rmtree(model)
    make_model("llama", model, inner=64)
    shutil.copyfile(paths.starter() / "tokenizer.json", model / "tokenizer.json")
    with pytest.raises(EngineError, match="cannot continue with these files"):
        training_choice.note(home, chosen(model), "keep")
    training_choice.note(home, chosen(model), "anew")
    assert home_of(home, chosen(model)).model_root != root


def test_a_starter_that_became_another_begins_anew_beside_the_training_of_before(home, tmp_path, monkeypatch):
    resources = shutil.copytree(paths.resources(), tmp_path / "resources")
    monkeypatch.setattr(paths, "resources", lambda: resources)
    retrain(resources / "starter")
    assert home_of(home, ModelSettings()).model == home.model, "the place of which the question is"
    assert ownership.other_model(home.model.checkpoints, model_source.folder_of(ModelSettings(), home.model.checkpoints))
    training_choice.note(home, ModelSettings(), "anew")
    place = home_of(home, ModelSettings())
    assert place.model != home.model
    assert model_source.folder_of(ModelSettings(), place.model.checkpoints) == resources / "starter"
