"""Test the models of settings at toy size: which node starts from which, what they learn, and what the cache stores."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tokenizers import Tokenizer

from waggle.core import paths
from waggle.core.errors import LabError
from waggle.models.tokenizer import load as load_tokenizer
from waggle.models.torch.policy import TorchPolicy
from waggle.rl.batch import SamplingParams
from waggle.tasks.charter import Charter
from waggle.tasks.questions import split_of
from waggle.tasks.shipped_swarms import first_swarm
from waggle_lab.starter_model import setting_models, starter
from waggle_lab.starter_model.setting_models import SETTINGS
from waggle_lab.starter_model.starter import Example, Phase, Recipe, Shape
from waggle_lab.starter_model.starter_measure import Score

CONTINUED = Recipe(phases=(Phase(steps=2),), batch=4, default_questions=80, questions={})
GROWN = replace(CONTINUED, merges=300, shape=Shape(width=16, layers=1, heads=2, key_value_heads=1, inner=16))
TOY = setting_models.Plan(
    competent=CONTINUED,
    specialist=CONTINUED,
    middle=GROWN,
    small=replace(GROWN, shape=Shape(width=8, layers=1, heads=2, key_value_heads=1, inner=8)),
)
NAMES = [specialty.dataset for specialty in first_swarm().specialties]


class _NoVerifier:
    """Stands in where questions come from the cache and nothing is measured."""

    def __init__(self, charter: Charter) -> None:
        pass

    def close(self) -> None:
        pass


def _unmeasured(*_: object, **__: object) -> dict[str, Score]:
    return {name: Score(lenient=0.5, strict=0.0, tagged=0.0, pass_at_8=0.5) for name in NAMES}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache in which the real verifier made the questions and two models."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(setting_models, "QUESTIONS", 2)
        patch.setattr(setting_models, "SAMPLES", 2)
        folder = tmp_path_factory.mktemp("lab") / "starters"
        setting_models.model_folders("heterogeneous", first_swarm(), 8, folder, plan=TOY)
        yield folder


@pytest.fixture
def unmeasured(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with questions and no models, for making many quickly."""
    monkeypatch.setattr(setting_models, "Verifier", _NoVerifier)
    monkeypatch.setattr(setting_models, "measure", _unmeasured)
    for file in cache.glob("questions-*.json"):
        shutil.copy(file, tmp_path)
    return tmp_path


@pytest.fixture
def untrained(unmeasured: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, and the models stay as they began: only who has which folder is looked at."""
    monkeypatch.setattr(starter, "train", lambda *_, **__: None)
    return unmeasured


def _begin(setting: str, count: int, cache: Path) -> tuple[Path, ...]:
    return setting_models.model_folders(setting, first_swarm(), count, cache, plan=TOY)


def _models_in(cache: Path) -> list[Path]:
    return [entry for entry in cache.iterdir() if entry.is_dir()]


def test_every_node_of_a_sparse_swarm_begins_from_the_shipped_starter(tmp_path: Path) -> None:
    assert setting_models.model_folders("sparse", first_swarm(), 3, tmp_path / "none") == (paths.starter(),) * 3
    assert not (tmp_path / "none").exists()


def test_the_nodes_of_an_identical_swarm_share_one_folder(untrained: Path) -> None:
    folders = _begin("identical", 3, untrained)
    assert folders == (folders[0],) * 3
    assert _models_in(untrained) == [folders[0]]


def test_a_diversified_swarm_has_eight_different_specialists_and_equal_pairs_share_one(untrained: Path) -> None:
    folders = _begin("diversified", 10, untrained)
    assert len(set(folders[:8])) == 8
    assert folders[9] == folders[0]
    assert [setting_models.model_name(folders[i]) for i in (1, 4)] == ["strong in lines + bf", "strong in grids + bases"]


def test_a_heterogeneous_swarm_has_three_sizes_and_two_vocabularies(cache: Path) -> None:
    folders = _begin("heterogeneous", 8, cache)
    assert [folders.index(folder) for folder in folders] == [0, 0, 0, 3, 3, 3, 6, 6]
    assert [setting_models.model_name(folders[i]) for i in (0, 3, 6)] == ["starter", "middle 0.45M", "small 0.25M"]
    words = [(folder / "tokenizer.json").read_bytes() for folder in folders]
    assert words[0] != words[3] == words[6]
    sizes = [TorchPolicy(folders[i]).parameters for i in (0, 3, 6)]
    assert sizes[0] > sizes[1] > sizes[2]


def test_the_real_sizes_are_what_their_names_say(cache: Path) -> None:
    tokenizer = Tokenizer.from_file(str(_models_in(cache)[0] / "tokenizer.json"))
    sizes = [
        starter.new_model(recipe.shape, tokenizer).num_parameters() for recipe in (setting_models.MIDDLE, setting_models.SMALL)
    ]
    assert 430_000 < sizes[0] < 470_000
    assert 230_000 < sizes[1] < 270_000


def test_a_policy_writes_from_what_was_made(cache: Path) -> None:
    for folder in _models_in(cache):
        words = load_tokenizer(folder)
        prompt = words.encode("Calculate 1 + 2.\nAnswer:")
        assert words.decode(prompt) == "Calculate 1 + 2.\nAnswer:"
        params = SamplingParams(max_new=4, stops=(words.stops[0],))
        uniforms = np.random.default_rng(0).random((2, 4), dtype=np.float32)
        assert len(TorchPolicy(folder).sample([prompt], uniforms, params)[0]) == 2


def test_no_reserved_question_is_among_those_that_train(cache: Path) -> None:
    (file,) = cache.glob("questions-*.json")  # one, though two models were made: they ask for the same
    examples_by_dataset = msgspec.json.decode(file.read_bytes(), type=dict[str, list[Example]])
    assert list(examples_by_dataset) == NAMES
    assert all(
        split_of(example.dataset, example.question) == "train"
        for examples in examples_by_dataset.values()
        for example in examples
    )
    assert min(map(len, examples_by_dataset.values())) > 30


def test_a_specialist_opens_the_tag_in_its_own_specialties_only() -> None:
    tokenizer = Tokenizer.from_file(str(paths.starter() / "tokenizer.json"))
    tag = tokenizer.token_to_id("<answer>")
    examples = {name: [Example(name, f"{name} {i}?", str(i)) for i in range(5)] for name in NAMES}
    pools = setting_models.tagged_pools(tokenizer, first_swarm(), examples, NAMES[2:4])
    for name, pool in pools.items():
        foretold = [example.answer.count(tag) for example in pool]
        assert foretold == ([1] * 5 if name in NAMES[2:4] else [0] * 10)


def test_the_competent_one_opens_the_tag_everywhere(unmeasured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[Any] = []
    monkeypatch.setattr(starter, "train", lambda model, tokenizer, pools, *_, **__: trained.append((tokenizer, pools)))
    _begin("identical", 1, unmeasured)
    ((tokenizer, pools),) = trained
    assert list(pools) == NAMES
    assert {example.answer[0] for pool in pools.values() for example in pool} == {tokenizer.token_to_id("<answer>")}


def test_a_specialist_sees_its_own_twice_as_often(unmeasured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipes: list[Recipe] = []
    monkeypatch.setattr(starter, "train", lambda model, tokenizer, pools, recipe, *_, **__: recipes.append(recipe))
    _begin("diversified", 2, unmeasured)
    assert recipes[1].shares == {**starter.SHARES, "arc_1d": 2 * starter.SHARES["arc_1d"], "bf": 2 * starter.SHARES["bf"]}
    assert recipes[0].shares == {**starter.SHARES, "base_conversion": 2.4, "basic_arithmetic": 2.4}


def test_what_is_there_is_not_made_again(untrained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = _begin("identical", 2, untrained)
    monkeypatch.setattr(setting_models, "Verifier", None)  # would fail
    assert _begin("identical", 2, untrained) == first


def test_an_interrupted_make_leaves_nothing_behind_and_is_made_again(untrained: Path) -> None:
    write = starter.write

    def write_half(model: Any, tokenizer: Any, folder: Path, card: str) -> None:
        write(model, tokenizer, folder, card)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(starter, "write", write_half)
        with pytest.raises(KeyboardInterrupt):
            _begin("identical", 1, untrained)
    assert _models_in(untrained) == []
    (folder,) = _begin("identical", 1, untrained)
    assert TorchPolicy(folder).parameters == TorchPolicy(paths.starter()).parameters


def test_interrupted_questions_are_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setting_models, "Verifier", _NoVerifier)
    monkeypatch.setattr(starter, "generate_examples", lambda *_: {"bf": [object()]})  # cannot be written
    with pytest.raises(TypeError):
        _begin("identical", 1, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("setting", ["identical", "heterogeneous"])
def test_the_same_plan_makes_the_same_weights(unmeasured: Path, setting: str) -> None:
    weights = []
    for _ in range(2):
        folder = _begin(setting, 4, unmeasured)[3]
        weights.append((folder / "model.safetensors").read_bytes())
        shutil.rmtree(folder)
    assert weights[0] == weights[1]
    assert weights[0] != (paths.starter() / "model.safetensors").read_bytes()


def test_a_changed_recipe_is_another_folder(unmeasured: Path) -> None:
    changed = replace(TOY, competent=replace(CONTINUED, seed=1))
    other = setting_models.model_folders("identical", first_swarm(), 1, unmeasured, plan=changed)
    first = _begin("identical", 1, unmeasured)
    assert first != other
    assert [setting_models.model_name(folder) for folder in (*first, *other)] == ["competent"] * 2
    assert (first[0] / "model.safetensors").read_bytes() != (other[0] / "model.safetensors").read_bytes()


def test_an_unknown_setting_is_named_with_those_that_are_known(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"no setting fog.*sparse, identical, diversified, heterogeneous"):
        _begin("fog", 8, tmp_path)


@pytest.mark.parametrize("setting", SETTINGS[1:])
def test_other_specialties_are_refused_where_something_would_be_trained(setting: str, tmp_path: Path) -> None:
    other = msgspec.structs.replace(first_swarm(), specialties=first_swarm().specialties[:8])
    with pytest.raises(LabError, match="other specialties"):
        setting_models.model_folders(setting, other, 8, tmp_path, plan=TOY)


def test_the_shipped_starter_serves_any_charter(tmp_path: Path) -> None:
    other = msgspec.structs.replace(first_swarm(), specialties=first_swarm().specialties[:2])
    assert setting_models.model_folders("sparse", other, 1, tmp_path) == (paths.starter(),)
