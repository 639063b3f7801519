"""Test that a model has one size wherever it is offered."""

import pytest

from waggle.engine.runtime import model_offers
from waggle.models.shared.suggested_models import suggested_models
from waggle.models.storage.hub_search import HubModel


@pytest.mark.parametrize("model", suggested_models(), ids=lambda model: model.title)
def test_a_search_that_finds_a_suggested_model_says_its_size_as_the_suggestion_does(model):
    (offer,) = model_offers.of_hub((HubModel(model.name, weights=model.weights * 5 // 4, size=model.download * 5 // 4),), None)
    suggested = model_offers.offer_of(model)
    assert (offer.weights, offer.bytes) == (suggested.weights, suggested.bytes)


def test_packed_numbers_of_a_quantised_model_are_not_taken_for_its_weights():
    plain, packed = model_offers.of_hub((HubModel("a/b", weights=100), HubModel("a/c", weights=100, quantised=True)), None)
    assert (plain.weights, packed.weights) == (100, 0)
