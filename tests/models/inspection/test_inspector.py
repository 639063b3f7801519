"""Models of strangers are read by a child process first: what takes memory, time or a program's life is refused in words."""

import json
import os
import shutil
import sys
import time
from pathlib import Path

import psutil
import pytest

from models.tiny_kinds import make_kind
from models.tokenizer_shelf import KINDS, put
from waggle.core import paths
from waggle.core.errors import ModelError
from waggle.models import tokenizer
from waggle.models.inspection import checks, growth, inspector
from waggle.models.inspection.report import ReadPart, reply_of
from waggle.models.shared import weight_files
from waggle.models.shared.configuration import model_config
from waggle.tasks.sandbox.child_process import ChildKilled, ChildProcess

STARTER_TOKENS = 608
GIB = 1 << 30


@pytest.fixture
def folder(tmp_path):
    return Path(shutil.copytree(paths.starter(), tmp_path / "model"))


@pytest.fixture(scope="module")
def generic(tmp_path_factory):
    """A model that transformers computes, with the starter's words."""
    model = make_kind("mixtral", tmp_path_factory.mktemp("generic"), vocab_size=STARTER_TOKENS)
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copy(paths.starter() / name, model)
    return model


def change(path: Path, **values: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def refusal(folder: Path) -> str:
    """Why a model is refused, within bounds: this process neither grows nor waits for long."""
    before, began = psutil.Process().memory_info().rss, time.process_time()
    with pytest.raises(ModelError) as caught:
        inspector.inspect(folder)
    assert psutil.Process().memory_info().rss - before < GIB // 4
    assert time.process_time() - began < 10.0
    assert caught.value.advice
    return caught.value.title


def test_a_model_that_can_be_opened_is_described(folder):
    (folder / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}\n{% endfor %}")
    report = inspector.inspect(folder)
    assert (report.configuration.model_type, report.configuration.generic, report.configuration.rows) == ("llama", False, 608)
    assert report.weights.parameters == report.configuration.parameters == 816_256
    assert report.weights.file_bytes == (folder / "model.safetensors").stat().st_size
    assert report.template.usable
    assert not report.template.problem
    assert report.tokenizer.stops == tokenizer.load(folder).stops


def test_a_model_of_the_generic_path_is_described_without_loading_it(generic):
    report = inspector.inspect(generic)
    assert report.configuration.generic
    assert report.weights.parameters == report.configuration.parameters
    assert (report.template.usable, report.tokenizer.largest) == (False, 607)


def test_equal_files_are_read_once_and_changed_ones_anew(folder, monkeypatch):
    first = inspector.inspect(folder)
    monkeypatch.setattr(inspector, "ChildProcess", None)
    assert inspector.inspect(folder) is first
    monkeypatch.undo()
    change(folder / "config.json", vocab_size=10**18)
    assert "vocab_size is 1e+18" in refusal(folder)


def test_a_template_that_cannot_be_used_leaves_the_model_usable(folder):
    (folder / "chat_template.jinja").write_text("{{ raise_exception('bees only') }}")
    assert inspector.inspect(folder).template.problem == "bees only"
    (folder / "chat_template.jinja").write_text("x" * (50 << 20))
    assert inspector.inspect(folder).template.problem == "it is too long"
    (folder / "chat_template.jinja").write_text(
        "{% for i in range(99999999) %}{% for j in range(99999999) %}x{% endfor %}{% endfor %}"
    )
    assert inspector.inspect(folder).template.problem


DOUBLING = {"type": "Replace", "pattern": {"String": "e"}, "content": "ee"}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
LONG_TOKEN = {"id": 607, "content": "e" * 10_000_000, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False, "special": False}  # fmt: skip


END = LONG_TOKEN | {"id": 1, "content": "<|eos|>", "special": True}


def split_at(pattern: str) -> dict[str, object]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"normalizer": {"type": "Sequence", "normalizers": [DOUBLING] * 600}}, "times as long"),  # 44 kB: ended every start
        ({"decoder": {"type": "Sequence", "decoders": [DOUBLING] * 60}}, "times as long"),
        ({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [BYTES] * 40}}, "times as long"),
        ({"normalizer": {"type": "Replace", "pattern": {"Regex": ""}, "content": "e" * 100_000}}, "times as long"),
        ({"normalizer": {"type": "Replace", "pattern": {"Regex": "(" * 20_000 + ")" * 20_000}, "content": ""}}, "parse depth"),
        ({"pre_tokenizer": split_at("((a+)+)+!")}, "retry-limit"),
        ({"added_tokens": [LONG_TOKEN]}, "10,000,000 characters"),
        ({"model": {"type": "BPE", "vocab": {"z": 0}, "merges": []}, "added_tokens": [END]}, "no tokens for plain text"),
    ],
)
def test_a_tokenizer_that_takes_memory_time_or_a_program_is_refused(folder, words, says):
    change(folder / "tokenizer.json", **words)
    assert says in refusal(folder)


def test_a_tokenizer_that_no_rule_knows_is_ended_by_its_bounds(folder, monkeypatch):
    """As if the rules above missed it."""
    change(folder / "tokenizer.json", normalizer={"type": "Sequence", "normalizers": [DOUBLING] * 600})
    with pytest.raises(EOFError, match=r"it ended with signal (6|11)"):
        ask_without(folder, "growth.MOST = float('inf'); process.GROWTH_BYTES = 1 << 28")
    change(folder / "tokenizer.json", normalizer=None, pre_tokenizer=split_at("a+b"))
    with pytest.raises(TimeoutError, match="no answer within 1 s of work"):
        ask_without(folder, "checks.TRIALS = ('a' * 200_000,)", work=1.0)


def ask_without(folder: Path, changed: str, work: float = 20.0) -> object:
    """Ask a child in which something was changed for the tokenizer of a folder."""
    monkeypatched = f"from waggle.models.inspection import checks, growth, process; {changed}; process.main()"
    before = paths.module_command
    paths.module_command = lambda _: [sys.executable, "-c", monkeypatched]
    try:
        child = ChildProcess("waggle.models.inspection.process", reply_of)
    finally:
        paths.module_command = before
    try:
        return child.ask(ReadPart("tokenizer", os.fsencode(folder)), 120.0, work)
    finally:
        child.end()


NESTED = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"hidden_size": 10**18}, "hidden_size is 1e+18"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1e+09"),
        ({"model_type": "gemma2", "num_hidden_layers": 10**9}, "num_hidden_layers is 1e+09"),
        ({"model_type": "gpt2", "n_layer": 10**9}, "n_layer is 1e+09"),
        ({"vocab_size": 2**40}, "vocab_size is 1.1e+12"),
        ({"model_type": "bees", "auto_map": {"AutoConfig": "code.Bees", "AutoModelForCausalLM": "code.Bees"}}, "type bees"),
        ({"model_type": "mixtral", "auto_map": {"AutoModelForCausalLM": "code.Bees"}}, "cannot be read"),
    ],
)
def test_a_configuration_that_no_model_has_is_refused_and_no_code_of_a_model_runs(folder, settings, says):
    (folder / "code.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\nclass Bees: pass\n")
    change(folder / "config.json", **settings)
    assert says in refusal(folder)
    assert not (folder / "ran").exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (NESTED, "recursion"),
        ('{"a":' * 100_000, "recursion"),
        ("[]", "holds no settings"),
        ('{"hidden_size": ' + "9" * 5000 + "}", "Exceeds the limit"),
        (" " * (model_config.LARGEST_TABLE + 1), "is too large: it has more than 34 MB"),
    ],
)
def test_a_configuration_that_takes_a_parser_its_life_is_refused(folder, content, says):
    (folder / "config.json").write_text(content)
    assert says in refusal(folder)


PROMISE = b'{"model.embed_tokens.weight":{"dtype":"F32","shape":[608,192],"data_offsets":[0,466944]}}'


def header_of(size: int, content: bytes) -> bytes:
    return size.to_bytes(8, "little") + content


@pytest.mark.parametrize(
    ("start", "size", "says"),
    [
        (b"", 0, "model.safetensors is incomplete"),
        (header_of(1 << 40, b"{"), 1000, "model.safetensors is incomplete"),
        (header_of(100_000_000, b"{" + b" " * 1000), 100_000_100, "the header of model.safetensors is too large"),
        (header_of(200_000, NESTED.encode()), 200_008, "cannot be read"),
        (header_of(len(PROMISE), PROMISE), 8 + len(PROMISE) + 10, "cannot be read"),
    ],
)  # fmt: skip
def test_a_header_that_is_too_large_or_says_too_much_is_refused(folder, start, size, says):
    with (folder / "model.safetensors").open("wb") as file:
        file.write(start)
        file.truncate(size)
    assert says in refusal(folder)


def test_weights_that_are_missing_or_pickled_are_refused(folder, generic, tmp_path):
    arrays = weight_files.load(folder / "model.safetensors")
    norm = arrays.pop("model.norm.weight")
    weight_files.save(arrays, folder / "model.safetensors")
    assert "model.norm.weight is not there" in refusal(folder)
    weight_files.save({**arrays, "model.norm.weight": norm[:-1]}, folder / "model.safetensors")
    assert "its config.json says" in refusal(folder)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert "as pickles" in refusal(folder)

    other = Path(shutil.copytree(generic, tmp_path / "other"))
    arrays = weight_files.load(other / "model.safetensors")
    missing = next(name for name in arrays if "experts" in name)
    weight_files.save({name: array for name, array in arrays.items() if name != missing}, other / "model.safetensors")
    assert "are not those that its config.json says" in refusal(other)
    arrays.pop("model.norm.weight")
    weight_files.save(arrays, other / "model.safetensors")
    assert "model.norm.weight is not there" in refusal(other)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_pipe_or_a_device_is_not_read(folder, name):
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert str(folder) in refusal(folder)
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    assert str(folder) in refusal(folder)


def test_links_to_files_are_followed(folder, tmp_path):
    linked = tmp_path / "linked"
    linked.mkdir()
    for path in folder.iterdir():
        (linked / path.name).symlink_to(path)
    assert inspector.inspect(linked) == inspector.inspect(folder)


def test_a_child_that_is_killed_or_cannot_be_started_blames_no_model(folder, monkeypatch):
    def killed(self, *_: object) -> None:
        raise ChildKilled("it ended with signal 9")

    monkeypatch.setattr(ChildProcess, "ask", killed)
    assert "cannot be checked now" in refusal(folder)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_honest_tokenizers_pass(tmp_path, kind):
    put(tmp_path, kind)
    assert growth.growth_of((tmp_path / "tokenizer.json").read_bytes()) < 20
    assert checks.words_within(tmp_path, rows=1 << 20).stops == tokenizer.load(tmp_path).stops


@pytest.mark.parametrize("kind", ["gpt2", "gemma2", "lfm2"])
def test_other_kinds_of_the_generic_path_are_inspected_too(kind, tmp_path):
    """Their modules import more of torch, which asks for a folder for temporary files."""
    make_kind(kind, tmp_path, vocab_size=STARTER_TOKENS)
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copy(paths.starter() / name, tmp_path)
    report = inspector.inspect(tmp_path)
    assert report.configuration.generic
    assert report.weights.parameters == pytest.approx(report.configuration.parameters, rel=0.02)
