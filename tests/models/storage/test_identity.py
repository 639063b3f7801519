"""A model is who its numbers are: what makes another model, what makes the same one speak otherwise, and what is nothing."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from models.test_tokenizer_conversion import vocabulary_and_merges
from models.tiny_models import make_model
from waggle.core import paths
from waggle.core.errors import ModelError
from waggle.models import tokenizer_conversion
from waggle.models.storage import identity
from waggle.models.storage.identity import PIECE, PIECES

TEMPLATE = "{{ bos_token }}{% for message in messages %}{{ message.content }}{{ eos_token }}{% endfor %}"


@pytest.fixture
def model(tmp_path) -> Path:
    return shutil.copytree(paths.starter(), tmp_path / "model")


def change_table(path: Path, **fields: object) -> None:
    table = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(table | fields))


def change_weights(folder: Path, change) -> None:
    weights = load_file(folder / "model.safetensors")
    for weight in weights.values():
        change(weight)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def test_the_version_that_wrote_the_configuration_is_nothing(model):
    before = identity.read(model)
    change_table(model / "config.json", transformers_version="9.9.9", use_cache=False)
    assert identity.read(model) == before


def test_neither_is_the_number_of_files_nor_the_place_of_the_folder(tmp_path):
    one_file, several = make_model("llama", tmp_path / "one"), tmp_path / "several"
    AutoModelForCausalLM.from_pretrained(one_file).save_pretrained(several, max_shard_size="50KB")
    assert len(list(several.glob("*.safetensors"))) > 1
    assert identity.read(several) == identity.read(one_file)
    moved = one_file.rename(tmp_path / "elsewhere")
    assert identity.read(moved) == identity.read(several)


def test_the_same_weights_in_another_precision_are_other_numbers_of_the_same_shapes(tmp_path):
    full = make_model("llama", tmp_path / "full")
    AutoModelForCausalLM.from_pretrained(full, dtype=torch.bfloat16).save_pretrained(tmp_path / "half")
    was, now = identity.read(full), identity.read(tmp_path / "half")
    assert was.numbers != now.numbers
    assert was.shapes == now.shapes
    assert not was.is_same_model(now)


def test_a_changed_weight_of_a_small_model_makes_another_one_though_its_file_has_the_same_size(model):
    before = identity.read(model)

    def nudge(weight: torch.Tensor) -> None:
        if weight.dim() == 1:
            weight[-1] += 1e-3

    change_weights(model, nudge)
    assert identity.read(model).numbers != before.numbers


@pytest.mark.parametrize("share", [1e-3, 1.0])
def test_training_shows_in_the_pieces_of_a_large_array_even_if_it_changed_one_number_in_a_thousand(share, tmp_path):
    noise = np.random.default_rng(0)
    weight = noise.standard_normal((1024, 1024), dtype=np.float32)
    assert weight.nbytes > 10 * PIECES * PIECE
    trained = weight + 1e-3 * (noise.random(weight.shape) < share).astype(np.float32)
    was, now = (numbers_of(tmp_path / name, array) for name, array in (("was", weight), ("now", trained)))
    assert was != now
    assert was == numbers_of(tmp_path / "again", weight)


@pytest.mark.parametrize("place", [0, -1])
def test_the_first_and_the_last_rows_of_a_large_array_are_read_where_new_tokens_stand(place, tmp_path):
    weight = np.zeros((1024, 1024), np.float32)
    longer = weight.copy()
    longer[place] = 1.0
    assert numbers_of(tmp_path / "was", weight) != numbers_of(tmp_path / "now", longer)


def numbers_of(folder: Path, weight: np.ndarray) -> str:
    make_model("llama", folder)
    save_file({"w": torch.from_numpy(weight)}, folder / "model.safetensors")
    return identity.read(folder).numbers


def test_words_are_what_each_id_stands_for_however_the_file_is_laid_out(model):
    before = identity.read(model)
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(model / "tokenizer.json"))
    theirs.save_pretrained(model / "saved")
    shutil.copyfile(model / "saved/tokenizer.json", model / "tokenizer.json")
    (model / "tokenizer.json").write_bytes(b" " + (model / "tokenizer.json").read_bytes())
    assert identity.read(model).words == before.words
    theirs.add_tokens(["<zyzzyva>"])
    theirs.save_pretrained(model / "saved")
    shutil.copyfile(model / "saved/tokenizer.json", model / "tokenizer.json")
    now = identity.read(model)
    assert now.numbers == before.numbers
    assert not now.is_same_model(before)


def test_two_words_that_changed_places_are_other_words_in_a_list_of_scores_too(tmp_path):
    folder = make_model("llama", tmp_path / "model")
    words = []
    for moment, pieces in enumerate((["<unk>", "a", "b"], ["<unk>", "b", "a"], ["<unk>", "a", "b"])):
        Tokenizer(models.Unigram([(piece, -1.0) for piece in pieces], unk_id=0)).save(str(folder / "tokenizer.json"))
        os.utime(folder / "tokenizer.json", (moment, moment))  # many systems give files of the same milliseconds the same time
        words.append(identity.read(folder).words)
    assert words[0] == words[2] != words[1]


@pytest.mark.parametrize("content", [b"{}", b'{"model": {"vocab": 7}}', b"\xff", b"[" * 100_000])
def test_of_words_in_an_unknown_form_every_byte_counts(content, tmp_path):
    folder = make_model("llama", tmp_path / "model")
    (folder / "tokenizer.json").write_bytes(content)
    before = identity.read(folder)
    (folder / "tokenizer.json").write_bytes(content + b" ")
    assert identity.read(folder).words != before.words


def test_another_template_or_other_stops_are_the_same_model_that_speaks_otherwise(model):
    change_table(model / "tokenizer_config.json", chat_template=TEMPLATE)
    before = identity.read(model)
    change_table(model / "tokenizer_config.json", chat_template=None)
    (model / "chat_template.jinja").write_text(TEMPLATE)
    assert identity.read(model) == before, "transformers keeps it in a file of its own since version 4.50"
    (model / "chat_template.jinja").write_text(TEMPLATE + "\n")
    other_template = identity.read(model)
    assert other_template.template != before.template
    assert (other_template.stops, other_template.is_same_model(before)) == (before.stops, True)
    change_table(model / "generation_config.json", eos_token_id=[0, 5])
    other_stops = identity.read(model)
    assert other_stops.stops != before.stops
    assert (other_stops.template, other_stops.is_same_model(before)) == (other_template.template, True)


def test_a_tokenizer_of_an_older_form_has_no_words_until_it_is_converted_and_its_model_is_known_before(tmp_path):
    older = make_model("llama", tmp_path / "older")
    vocabulary_and_merges(older)
    before = identity.read(older)
    assert before.words == ""
    tokenizer_conversion.convert(older)
    after = identity.read(older)
    assert after.words
    assert after.is_same_model(before)
    assert before.is_same_model(after)


def test_a_folder_without_weights_is_no_model(tmp_path):
    with pytest.raises(ModelError, match="is not there"):
        identity.read(tmp_path)
