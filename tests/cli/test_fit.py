"""`waggle fit` reads what opening a model reads, and never says "Fits" of what cannot be opened."""

import json
import os
import shutil
import subprocess
import sys

import pytest

import system_folders
from models.local_hub import local_hub
from models.tiny_kinds import make_kind
from waggle.cli import main
from waggle.core import paths
from waggle.models.shared import weight_files

WORDS = ("tokenizer.json", "tokenizer_config.json", "generation_config.json")


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(paths.starter(), tmp_path / "model")


@pytest.fixture
def hub():
    with local_hub() as hub:
        yield hub


def fit(tmp_path, hub, name):
    """Run the command in a process of its own, which reads the hub's address when it starts."""
    cache = tmp_path / "cache"
    environment = {
        **os.environ,
        "HF_ENDPOINT": hub.endpoint,
        system_folders.CACHE: str(cache),
        "WAGGLE_HOME": str(tmp_path / "home"),
    }
    command = [sys.executable, "-m", "waggle", "fit", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=300)
    assert "Traceback" not in done.stderr
    assert list(cache.rglob("*.safetensors")) == [], "nothing is left"
    assert not (cache / "waggle" / "models").exists() or list((cache / "waggle" / "models").iterdir()) == []
    return done.stdout, done.stderr


@pytest.mark.parametrize("knows_range", [True, False])
def test_of_a_model_of_the_hub_only_the_headers_of_the_weights_are_downloaded(tmp_path, folder, hub, knows_range):
    weights = weight_files.load(folder / "model.safetensors")
    weight_files.save(
        {**weights, "unused": weights["model.embed_tokens.weight"].repeat(40, axis=0)}, folder / "model.safetensors"
    )
    size, hub.knows_range = (folder / "model.safetensors").stat().st_size, knows_range
    hub.add("bees/tiny", folder)
    output, _ = fit(tmp_path, hub, "bees/tiny")
    assert output.startswith("Fits: ")
    assert [request.range for request in hub.requests_for("model.safetensors") if "cdn" in request.path] == ["bytes=0-131071"]
    if knows_range:
        assert hub.bytes_sent["model.safetensors"] < size / 10


def test_a_model_of_the_hub_that_lacks_a_weight_or_whose_words_cannot_be_read_does_not_fit(tmp_path, folder, hub):
    words = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    doubling = {"type": "Replace", "pattern": {"String": "e"}, "content": "ee"}
    bomb = words | {"normalizer": {"type": "Sequence", "normalizers": [doubling] * 600}}
    hub.add("bees/bomb", folder, tokenizer__json=json.dumps(bomb).encode())
    weights = weight_files.load(folder / "model.safetensors")
    del weights["model.norm.weight"]
    weight_files.save(weights, folder / "model.safetensors")
    hub.add("bees/half", folder)
    for name, says in (
        ("bees/half", "model.norm.weight is not there"),
        ("bees/bomb", "times as long"),
        ("bees/none", "Hugging Face has no"),
    ):
        output, errors = fit(tmp_path, hub, name)
        assert output == ""
        assert says in errors


def test_a_model_of_the_generic_path_in_shards_fits_by_its_headers(tmp_path, hub):
    folder = make_kind("smollm3", tmp_path / "model", vocab_size=608)
    for name in WORDS:
        shutil.copy(paths.starter() / name, folder)
    weights = weight_files.load(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    shards = {name: f"model-0000{1 + number % 2}-of-00002.safetensors" for number, name in enumerate(weights)}
    for shard in set(shards.values()):
        weight_files.save({name: weights[name] for name in weights if shards[name] == shard}, folder / shard)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": shards}))
    hub.add("bees/shards", folder)
    assert fit(tmp_path, hub, "bees/shards")[0].startswith("Fits: ")


def test_what_is_here_and_cannot_be_opened_does_not_fit(tmp_path, folder, capsys):
    home = ["--home", str(tmp_path / "home")]
    (tmp_path / "bees.gguf").write_bytes(b"GGUF")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    for model, says in (
        (tmp_path / "bees.gguf", "bees.gguf cannot be opened: it is incomplete."),
        (folder, "as pickles"),
        (tmp_path / "none", "There is no model in"),
    ):
        assert main.main(["fit", str(model), *home]) == 1
        output = capsys.readouterr()
        assert output.out == ""
        assert says in output.err
