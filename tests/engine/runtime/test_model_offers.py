"""Test that the same is said of a model wherever it is offered."""

import pytest
from msgspec.structs import replace

from waggle.core.settings import Settings
from waggle.engine.runtime import model_offers
from waggle.models.memory_fit import DeviceCapacity
from waggle.models.shared.suggested_models import suggested_models
from waggle.models.storage.hub_search import HubModel

LAPTOP = DeviceCapacity(free=int(9e9), speeds={"float32": 1.2e11, "bfloat16": 2.4e11})


@pytest.mark.parametrize("machine", [None, LAPTOP], ids=["not measured", "laptop"])
@pytest.mark.parametrize("model", suggested_models(), ids=lambda model: model.title)
def test_a_search_that_finds_a_suggested_model_says_of_it_what_the_suggestion_says(model, machine):
    suggestions = model_offers.suggested(machine, Settings())
    hub_model = HubModel(model.name, weights=model.weights * 5 // 4, size=model.download * 5 // 4, downloads=7)
    (offer,) = model_offers.of_hub((hub_model,), machine, suggestions)
    (suggested,) = (each for each in suggestions if each.name == model.name)
    assert offer == replace(suggested, downloads=7)


def test_packed_numbers_of_a_quantised_model_are_not_taken_for_its_weights():
    plain, packed = model_offers.of_hub((HubModel("a/b", weights=100), HubModel("a/c", weights=100, quantised=True)), None, ())
    assert (plain.weights, packed.weights) == (100, 0)
