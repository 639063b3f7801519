"""Test the list of suggested models: complete, in order, and each of a kind that Waggle trains, with room for what it needs."""

import pytest

from waggle.core.model_reference import NAME
from waggle.core.settings import Settings
from waggle.engine.runtime import model_fit
from waggle.models.memory_fit import DeviceCapacity, weights_of
from waggle.models.shared.generic_config import GenericConfig
from waggle.models.shared.suggested_models import SuggestedModel, suggested_models, title_of

SUGGESTED = suggested_models()
NAMES = [model.name for model in SUGGESTED]


def test_they_are_few_and_the_smallest_comes_first():
    assert 8 <= len(SUGGESTED) <= 12
    assert len(set(NAMES)) == len(NAMES)
    assert [model.weights for model in SUGGESTED] == sorted(model.weights for model in SUGGESTED)


@pytest.mark.parametrize("model", SUGGESTED, ids=NAMES)
def test_each_says_what_a_person_wants_to_know(model: SuggestedModel):
    assert NAME.fullmatch(model.name)
    assert model.good_at.endswith(".")
    assert model.licence
    assert model.weights * 2 <= model.download <= model.weights * 2.7, "bfloat16, perhaps with its head stored twice, and words"


@pytest.mark.parametrize("model", SUGGESTED, ids=NAMES)
def test_its_shape_gives_its_number_of_weights(model: SuggestedModel):
    configuration = model.configuration
    assert weights_of(configuration) == pytest.approx(model.weights, rel=0.01)
    if isinstance(configuration, GenericConfig):
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING
        from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

        assert model.model_type in CONFIG_MAPPING
        assert model.model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES


def test_what_fits_depends_on_the_computer():
    laptop = DeviceCapacity(free=int(6e9), speeds={"float32": 1e11, "bfloat16": 1e11})
    station = DeviceCapacity(free=int(80e9), speeds={"float32": 2e13, "bfloat16": 3e14}, device="cuda")
    small, large = SUGGESTED[0].configuration, SUGGESTED[-1].configuration
    assert model_fit.fit_model(laptop, small, Settings()).fits
    assert model_fit.fit_model(station, large, Settings()).fits
    verdicts = [model_fit.verdict(laptop, Settings(), model.configuration).fits for model in SUGGESTED]
    assert verdicts[0]
    assert not verdicts[-1]
    assert verdicts == sorted(verdicts, reverse=True), "no model fits where a smaller one does not"


def test_a_suggested_model_is_called_by_its_title_and_any_other_by_its_name():
    assert title_of("Qwen/Qwen2.5-0.5B-Instruct") == "Qwen2.5 0.5B"
    assert title_of("someone/Their-Model") == "someone/Their-Model"
    assert title_of("") == ""
