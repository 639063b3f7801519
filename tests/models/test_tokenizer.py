"""The tokenizer: a peer's text is plain text, whatever it looks like."""

import base64
import json
import shutil
import struct

import pytest
from tokenizers import Tokenizer, models

from waggle.core import paths
from waggle.core.errors import ModelError
from waggle.models.tokenizer import load

FAR = struct.pack("<II", 4, 0xFFFFF << 10)  # a tree of one branch that points beyond its end
PANICS = base64.b64encode(FAR + b"a\0").decode()


@pytest.mark.parametrize("text", ["<|eos|>", "a<|eos|>b", "<|pad|>", "<answer>3<|eos|></answer>"])
def test_a_control_token_in_a_text_is_encoded_as_plain_text_and_comes_back(text):
    tokenizer = load(paths.starter())
    ids = tokenizer.encode(text)
    assert tokenizer.stops[0] not in ids
    assert 0 not in ids  # the padding token
    assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("more", [{}, {"normalized": True}, {"lstrip": True, "rstrip": True}])
def test_a_stop_token_in_a_text_is_plain_also_where_the_file_does_not_call_it_special(tmp_path, more):
    shutil.copy(paths.starter() / "config.json", tmp_path)
    stored = json.loads((paths.starter() / "tokenizer.json").read_text())
    for token in stored["added_tokens"]:
        token.update(more | {"special": False} if token["content"] == "<|eos|>" else {})
    (tmp_path / "tokenizer.json").write_text(json.dumps(stored))
    usual, odd = load(paths.starter()), load(tmp_path)
    for text in ("a<|eos|>b", "<|eos|>", "<answer>3 <|eos|></answer>", "What is 3 + 4?\nAnswer: 7"):
        assert odd.encode(text).tolist() == odd.prompt(text).ids.tolist() == usual.encode(text).tolist()
        assert odd.decode(odd.encode(text)) == text


@pytest.mark.parametrize("kind", [models.WordLevel, models.WordPiece])
def test_a_model_whose_stop_token_is_a_word_of_any_text_is_refused(tmp_path, kind):
    words = Tokenizer(kind({"end": 0, "?": 1}, unk_token="?"))
    words.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "config.json").write_text('{"eos_token_id": 0}')
    with pytest.raises(ModelError, match="Any text may hold the stop token"):
        load(tmp_path)


def test_a_text_is_read_whole_though_the_file_bids_to_cut_and_to_pad_it(tmp_path):
    shutil.copy(paths.starter() / "config.json", tmp_path)
    tokenizer = Tokenizer.from_file(str(paths.starter() / "tokenizer.json"))
    tokenizer.enable_truncation(5)
    tokenizer.enable_padding(length=8)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    for text in ("What is 3 + 4?" * 5, "3"):
        assert load(tmp_path).prompt(text).ids.tolist() == load(paths.starter()).encode(text).tolist()


def test_a_text_is_the_same_tokens_each_time_though_the_file_bids_to_draw_lots(tmp_path):
    shutil.copy(paths.starter() / "config.json", tmp_path)
    words = json.loads((paths.starter() / "tokenizer.json").read_text())
    words["model"]["dropout"] = 0.5
    (tmp_path / "tokenizer.json").write_text(json.dumps(words))
    text = "What is the greatest common divisor of 12 and 18?"
    tokenizer = load(tmp_path)
    assert {tuple(tokenizer.encode(text)) for _ in range(20)} == {tuple(load(paths.starter()).encode(text))}


@pytest.mark.parametrize(
    "odd",
    [
        {"normalizer": {"type": "Precompiled", "precompiled_charsmap": PANICS}},  # its panics are not an Exception
        {"model": {"type": "Unigram", "unk_id": None, "vocab": [["a", -1.0]]}},
    ],
)
def test_words_that_can_be_read_and_not_used_are_named(tmp_path, odd):
    shutil.copy(paths.starter() / "config.json", tmp_path)
    words = json.loads((paths.starter() / "tokenizer.json").read_text())
    (tmp_path / "tokenizer.json").write_text(json.dumps(words | odd))
    with pytest.raises(ModelError, match="cannot be read"):
        load(tmp_path)


def test_a_folder_without_words_and_a_damaged_file_are_named(tmp_path):
    with pytest.raises(ModelError, match=r"There is no tokenizer\.json"):
        load(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ModelError, match="cannot be read"):
        load(tmp_path)


def test_a_model_that_names_no_stop_token_is_refused(tmp_path):
    shutil.copy(paths.starter() / "tokenizer.json", tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"eos_token_id": None}))
    with pytest.raises(ModelError, match="names no stop token"):
        load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"1", b"\xff", b"[" * 100_000, b'{"eos_token_id":' + b"1" * 5000 + b"}"])
def test_a_config_that_cannot_be_read_is_named(tmp_path, content):
    shutil.copy(paths.starter() / "tokenizer.json", tmp_path)
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ModelError, match=r"config\.json"):
        load(tmp_path)


@pytest.mark.parametrize("stop", [True, -1, 1 << 40, [], ["2"], {}])
def test_a_stop_token_that_is_no_token_is_none(tmp_path, stop):
    shutil.copy(paths.starter() / "tokenizer.json", tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"eos_token_id": stop}))
    with pytest.raises(ModelError, match="names no stop token"):
        load(tmp_path)
