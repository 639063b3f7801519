"""Tokenizers of older forms are converted once, to the tokens that transformers gives."""

import io
import json
import shutil

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import AutoTokenizer

from models.tokenizer_shelf import CORPUS
from waggle.core.errors import ModelError
from waggle.models import tokenizer_conversion
from waggle.models.tokenizer import load

TEXTS = ("What is the answer?\nAnswer: 12", "  größer  ", "🐝 <s> it's", "")


def sentence_piece(folder):
    trainer = pytest.importorskip("sentencepiece").SentencePieceTrainer
    written = io.BytesIO()
    trainer.train(
        sentence_iterator=iter(CORPUS * 20), model_writer=written, vocab_size=330, model_type="bpe", byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, minloglevel=2,
    )  # fmt: skip
    (folder / "tokenizer.model").write_bytes(written.getvalue())
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "eos_token_id": 2}))
    words = {"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(words))
    return folder


def vocabulary_and_merges(folder):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, special_tokens=["<end>"], show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.model.save(str(folder))
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2", "eos_token_id": 0}))
    words = {"tokenizer_class": "GPT2Tokenizer", "bos_token": "<end>", "eos_token": "<end>", "unk_token": "<end>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(words))
    return folder


@pytest.mark.parametrize("make", [sentence_piece, vocabulary_and_merges])
def test_a_tokenizer_of_an_older_form_is_converted_once(tmp_path, make, monkeypatch):
    folder = make(tmp_path)
    theirs = AutoTokenizer.from_pretrained(shutil.copytree(folder, tmp_path / "theirs"))
    names = {path.name for path in folder.iterdir()}
    mine = load(folder)
    assert {path.name for path in folder.iterdir()} == {*names, "tokenizer.json"}
    for text in TEXTS:
        expected = theirs(text, split_special_tokens=True)["input_ids"]
        assert mine.prompt(text).ids.tolist() == expected
        whole = theirs(f"is it?{text}", split_special_tokens=True)["input_ids"]
        assert mine.prompt("is it?").followed_by(text).ids.tolist() == whole
    monkeypatch.setattr(tokenizer_conversion, "ChildProcess", None)
    assert load(folder).prompt(TEXTS[0]).ids.tolist() == mine.prompt(TEXTS[0]).ids.tolist()


@pytest.mark.parametrize("content", [b"", b"no model", b"\xff" * 1000])
def test_a_damaged_file_is_refused_in_words_and_leaves_nothing(tmp_path, content):
    (tmp_path / "tokenizer.model").write_bytes(content)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "eos_token_id": 2}))
    with pytest.raises(ModelError, match="cannot be converted: "):
        load(tmp_path)
    assert not (tmp_path / "tokenizer.json").exists()


def test_code_that_comes_with_a_model_is_not_run(tmp_path):
    (tmp_path / "tokenizer.model").write_bytes(b"x")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bees", "eos_token_id": 2}))
    (tmp_path / "tokenization_bees.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Bees: pass\n")
    words = {"tokenizer_class": "Bees", "auto_map": {"AutoTokenizer": ["tokenization_bees.Bees", None]}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(words))
    with pytest.raises(ModelError, match="cannot be converted: "):
        load(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_a_file_that_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tokenizer_conversion, "LARGEST", 10)
    (tmp_path / "tokenizer.model").write_bytes(b"x" * 11)
    with pytest.raises(ModelError, match=r"tokenizer\.model is too large"):
        load(tmp_path)
