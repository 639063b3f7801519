"""Test that a quantised model is refused with the name of the model that it was made from."""

from pathlib import Path

import pytest
from gguf import GGUFWriter

from waggle.core.errors import ModelError
from waggle.models.shared.configuration import quantised

QUANTISED = {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}}
NAMED = "Choose Qwen/Qwen3-0.6B, which it was made from."
UNKNOWN = "Choose the model that it was made from."


@pytest.mark.parametrize(
    ("card", "table", "advice"),
    [
        ("---\nbase_model: Qwen/Qwen3-0.6B\n---\n# x", {}, NAMED),
        ("---\nlicense: mit\nbase_model:\n- Qwen/Qwen3-0.6B\n- other/model\n---\n", {}, NAMED),
        ("---\nbase_model: \"Qwen/Qwen3-0.6B\"\n---\n", {}, NAMED),
        ("", {"_name_or_path": "Qwen/Qwen3-0.6B"}, NAMED),
        ("# a card\nbase_model: Qwen/Qwen3-0.6B\n", {}, UNKNOWN),
        ("---\nbase_model: ../../etc/passwd\n---\n", {"_name_or_path": "/home/somebody/model"}, UNKNOWN),
        ("---\nbase_model: <b>Click/here</b>\n---\n", {"_name_or_path": ["a/b"]}, UNKNOWN),
        ("", {}, UNKNOWN),
    ],
)  # fmt: skip
def test_the_advice_names_the_model_it_was_made_from(tmp_path, card, table, advice):
    if card:
        (tmp_path / "README.md").write_text(card)
    with pytest.raises(ModelError, match="does not train quantised models") as error:
        quantised.require_plain(tmp_path, QUANTISED | table)
    assert error.value.advice == advice


@pytest.mark.parametrize(("method", "name"), [("gptq", "GPTQ"), ("awq", "AWQ")])
def test_what_needs_another_package_is_refused_with_its_name(tmp_path, method, name):
    with pytest.raises(ModelError, match=f"quantised with {name}. Opening it needs gptqmodel") as error:
        quantised.require_plain(tmp_path, {"quantization_config": {"quant_method": method}, "_name_or_path": "Qwen/Qwen3-0.6B"})
    assert error.value.advice == NAMED
    with pytest.raises(ModelError, match="does not train quantised models"):
        quantised.require_plain(tmp_path, {"quantization_config": {"quant_method": [method]}})


def test_a_plain_model_passes(tmp_path):
    quantised.require_plain(tmp_path, {"model_type": "llama"})


def written(path: Path, *, repository: str) -> Path:
    writer = GGUFWriter(path, "llama")
    writer.add_name("Qwen3 0.6B")
    writer.add_file_type(2)
    writer.add_base_model_count(1)
    writer.add_base_model_repo_url(0, repository)
    writer.add_token_list(["a", "b"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def test_a_gguf_file_says_what_it_was_made_from(tmp_path):
    path = written(tmp_path / "model.gguf", repository="https://huggingface.co/Qwen/Qwen3-0.6B")
    assert quantised.refuse_gguf(path, "it is").advice == NAMED
    other = written(tmp_path / "other.gguf", repository="https://somewhere.example/Qwen/Qwen3-0.6B")
    assert quantised.refuse_gguf(other, "it is").advice == UNKNOWN


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGUF" + b"\xff" * 200, b"not one" * 100])
def test_a_broken_gguf_file_is_refused_all_the_same(tmp_path, content):
    (tmp_path / "x.gguf").write_bytes(content)
    assert quantised.refuse_gguf(tmp_path / "x.gguf", "it is").advice == UNKNOWN
