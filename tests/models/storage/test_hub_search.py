"""Searches of a hub on this computer: what is shown of a model, and every failure."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest
from huggingface_hub import HfApi, constants

from models.local_hub import Hub, local_hub, no_hub
from waggle.core.errors import HubUnavailable, ModelError
from waggle.models.storage.hub_search import EXPANDED, LOOKED_AT, MOST, HubModel, search

FILES = {"config.json": b"{}", "model.safetensors": b""}
SIZED = {"safetensors": {"parameters": {"BF16": 1000, "F32": 10}, "total": 1010}}


@pytest.fixture
def hub():
    with local_hub() as local:
        yield local


def add(hub: Hub, name: str, **facts: object) -> None:
    hub.repositories[name] = FILES
    hub.facts[name] = facts


def test_what_is_asked_of_the_hub_and_what_is_said_of_a_model(hub):
    tags = ["transformers", "safetensors", "license:apache-2.0", "en"]
    add(hub, "bees/Tiny-Instruct", tags=tags, downloads=12, **SIZED)
    (model,) = search("tiny", endpoint=hub.endpoint)
    assert model == HubModel("bees/Tiny-Instruct", "apache-2.0", weights=1010, size=2040, downloads=12)
    query = parse_qs(urlsplit(hub.requests[0].path).query)
    assert query["search"] == ["tiny"]
    assert query["filter"] == ["safetensors"]
    assert query["sort"] == ["downloads"]
    assert query["limit"] == [str(LOOKED_AT)]
    assert hub.requests[0].token == ""
    api = HfApi(endpoint=hub.endpoint, token=False)
    list(api.list_models(search="tiny", filter="safetensors", sort="downloads", limit=LOOKED_AT, expand=list(EXPANDED)))
    assert parse_qs(urlsplit(hub.requests[1].path).query) == query, "what the hub's own library asks"


def test_only_models_that_write_text_and_have_safe_weights_the_most_downloaded_first(hub):
    add(hub, "bees/one", downloads=1)
    add(hub, "bees/most", downloads=99, pipeline_tag="image-text-to-text")
    add(hub, "bees/embeds", downloads=50, pipeline_tag="feature-extraction")
    add(hub, "bees/pickled", downloads=50, tags=["transformers", "pytorch"])
    add(hub, "wasps/one", downloads=70)
    add(hub, "bees/secret", downloads=70)
    hub.private.add("bees/secret")
    assert [model.name for model in search("bees", endpoint=hub.endpoint)] == ["bees/most", "bees/one"]


def test_a_model_that_needs_an_account_or_is_quantised_says_so(hub):
    add(hub, "bees/gated")
    hub.gated.add("bees/gated")
    add(hub, "bees/small", config={"model_type": "llama", "quantization_config": {"bits": 4}})
    by_name = {model.name: model for model in search("bees", endpoint=hub.endpoint)}
    assert (by_name["bees/gated"].gated, by_name["bees/gated"].quantised) == (True, False)
    assert (by_name["bees/small"].gated, by_name["bees/small"].quantised) == (False, True)
    assert by_name["bees/small"].size == 0, "not known"


def test_at_most_so_many_are_shown(hub):
    for number in range(MOST + 5):
        add(hub, f"bees/m{number}")
    assert len(search("bees", endpoint=hub.endpoint)) == MOST


def test_nothing_is_an_answer(hub):
    assert search("nothing like it", endpoint=hub.endpoint) == ()


def test_strange_values_of_a_stranger_do_no_harm(hub):
    counts = {"parameters": {"BF16": 10**30}, "total": 1}
    add(hub, "bees/odd", downloads=-1, tags=["safetensors", "license:" + "x" * 500], safetensors=counts)
    (model,) = search("odd", endpoint=hub.endpoint)
    assert len(model.licence) <= 40
    assert (model.weights, model.downloads) == (0, 0)


def test_a_hub_that_is_away_or_in_trouble(hub, monkeypatch):
    with no_hub() as nowhere, pytest.raises(HubUnavailable, match="cannot be reached"):
        search("tiny", endpoint=nowhere)
    for status, kind in ((503, HubUnavailable), (429, HubUnavailable), (400, ModelError)):
        hub.trouble = status
        with pytest.raises(kind, match=f"Hugging Face answered the search with {status}"):
            search("tiny", endpoint=hub.endpoint)
    hub.trouble = 511
    with pytest.raises(HubUnavailable, match="log in first"):
        search("tiny", endpoint=hub.endpoint)
    hub.trouble = 0
    for page in (b"<html>Please log in</html>", json.dumps({"error": "no"}).encode(), b'[{"name": 1}]', b"[3]"):
        hub.says = page
        with pytest.raises(ModelError, match="What answered is not Hugging Face"):
            search("tiny", endpoint=hub.endpoint)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(HubUnavailable, match="cannot be reached"):
        search("tiny", endpoint=hub.endpoint)
