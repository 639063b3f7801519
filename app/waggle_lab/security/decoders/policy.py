"""The decoders of model files: checkpoints, the training journal, and the config.json of a model folder."""

import contextlib
import hashlib
import shutil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import zstandard
from safetensors.numpy import save
from tokenizers import Tokenizer, models

from waggle.core.errors import CheckpointError, ModelError
from waggle.models.shared import weight_files
from waggle.models.shared.configuration import model_config
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.storage import checkpoint as checkpoints
from waggle.models.storage import training_journal
from waggle.models.storage.checkpoint import CheckpointState
from waggle.models.tokenizer import load as load_tokenizer
from waggle_lab.security.decoders import Decoder

FILES = ("model.safetensors", "moments.safetensors", "state.json", checkpoints.SUMS)


class _Untrained:
    """A policy that accepts any state."""

    steps = 0
    training = TrainingMode()

    def state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return {}, {}

    def restore(self, weights: dict[str, Any], moments: dict[str, Any], steps: int) -> None:
        pass


def checkpoint(scratch: Path) -> Decoder:
    """One file of a checkpoint; the first byte says which, and whether the checksums are made to match it."""
    root = scratch / "checkpoints"
    state = msgspec.json.encode(CheckpointState(round=3, step=2, epoch=1, charter="c", base="b"))
    weights = save({"w": np.zeros(2, np.float32)})
    whole = {"model.safetensors": weights, "moments.safetensors": weights, "state.json": state}

    def check(data: bytes) -> None:
        shutil.rmtree(root, ignore_errors=True)
        folder = root / "r00000003"
        folder.mkdir(parents=True)
        which, content = data[:1], data[1:]
        files = {**whole, FILES[(which or b"\0")[0] % 4]: content}
        sums = files.pop(checkpoints.SUMS, None) or _sums(files if which < b"\x80" else whole)
        for name, file_content in {**files, checkpoints.SUMS: sums}.items():
            (folder / name).write_bytes(file_content)
        try:
            saved, aside = checkpoints.load_newest(root, _Untrained(), "b")
        except CheckpointError as refused:
            assert refused.advice
            assert folder.is_dir()
            return
        assert (saved is None) == (len(aside) == 1)
        assert folder.is_dir() == (saved is not None)

    return Decoder((b"\0" + weights, b"\1" + weights, b"\2" + state, b"\3" + _sums(whole), b"\x82" + state), check)


def stop_token(scratch: Path) -> Decoder:
    """The stop token in the config.json of any model."""
    Tokenizer(models.BPE()).save(str(scratch / "tokenizer.json"))
    path = scratch / "config.json"

    def check(data: bytes) -> None:
        path.write_bytes(data)
        try:
            assert all(isinstance(stop, int) for stop in load_tokenizer(scratch).stops)
        except ModelError as refused:
            assert refused.advice

    return Decoder((b'{"eos_token_id": 2}', b'{"eos_token_id": [2, 3], "model_type": "llama"}'), check)


def configuration(scratch: Path) -> Decoder:
    """The config.json as the shape of a network, which must be usable if it is read; and the index of weight files."""
    path, index = scratch / "config.json", scratch / weight_files.INDEX
    small = {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 10}
    seeds = (
        {**small, "model_type": "llama", "rope_scaling": {"rope_type": "llama3", "factor": 8.0}, "torch_dtype": "bfloat16"},
        {**small, "model_type": "qwen2", "use_sliding_window": True, "sliding_window": 4096, "max_window_layers": 28},
        {**small, "model_type": "qwen3", "head_dim": 4, "rope_parameters": {"rope_theta": 1e6}, "layer_types": ["full"]},
        {**small, "model_type": "phi3", "sliding_window": 8, "rope_scaling": None},
        {
            **small,
            "model_type": "gemma3_text",
            "num_key_value_heads": 1,
            "sliding_window_pattern": 2,
            "rope_local_base_freq": 1e4,
            "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8.0}},
            "query_pre_attn_scalar": 4,
        },
        {"metadata": {"total_size": 8}, "weight_map": {"lm_head.weight": "model-00001-of-00002.safetensors"}},
    )

    def check(data: bytes) -> None:
        index.write_bytes(data)
        with contextlib.suppress(ModelError, OSError):  # none of the files that it may name exists
            assert weight_files.of_model(scratch, {}) == {}
        path.write_bytes(data)
        try:
            decoded = model_config.read(scratch)
        except ModelError as refused:
            assert refused.advice
            return
        assert len(decoded.windows) in (0, decoded.num_hidden_layers)
        for rope in set(decoded.ropes):
            with np.errstate(over="raise", divide="raise", invalid="raise"):
                frequencies = rope.frequencies(decoded.head_dim)
            assert frequencies.shape == (decoded.head_dim // 2,)
            assert frequencies.min() > 0.0  # min and max, because the fuzzer would keep an array that a comparison creates
            assert frequencies.max() < np.inf
        assert 0.0 <= decoded.rms_norm_eps < np.inf
        assert all(min(shape) > 0 for shape in decoded.weights().values())
        assert decoded.bytes_per_token(4, recompute=True) > 0

    return Decoder(tuple(map(msgspec.json.encode, seeds)), check)


def journal(scratch: Path) -> Decoder:
    """A journal, plain and with the bytes as an entry whose checksum matches, which random bytes would not."""
    root = scratch / "journals"
    saved = CheckpointState(round=4, step=3, epoch=1, charter="c", base="b")
    tokens, numbers = np.zeros(2, "<i4").tobytes(), np.zeros(1, "<f4").tobytes()
    lesson = training_journal.JournaledGroup(
        prompt=tokens, completions=[tokens], advantage=numbers, weight=numbers, old_logp=None, returns=None
    )
    entry = msgspec.msgpack.encode(training_journal.JournalEntry(saved=saved, lessons=[lesson]))

    def check(data: bytes) -> None:
        _check_journal(root, data)
        _check_journal(root, _entry(data) + _entry(entry))
        torn = _entry(data)
        assert _check_journal(root, _entry(entry) + torn[: len(data) % len(torn)]) is None, "an interrupted write is no damage"

    return Decoder((_entry(entry), entry, msgspec.msgpack.encode(training_journal.JournalEntry(saved=saved))), check)


def _check_journal(root: Path, content: bytes) -> Path | None:
    """Check that mending keeps all readable entries, and saves a copy unless the rest is only an incomplete entry."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    path = root / "journal-r00000003"
    path.write_bytes(content)
    before = _entries(root)
    aside = training_journal.mend(root, 3)
    assert aside is None or aside.read_bytes() == content
    remaining = path.read_bytes()
    assert content.startswith(remaining)
    assert aside or _is_short(content[len(remaining) :])
    assert _entries(root) == before
    assert training_journal.mend(root, 3) is None
    return aside


def _is_short(rest: bytes) -> bool:
    """Whether the rest is an incomplete entry: shorter than its header, or than the header says."""
    return (
        len(rest) < training_journal.HEAD.size
        or len(rest) - training_journal.HEAD.size < training_journal.HEAD.unpack_from(rest)[0]
    )


def _entries(root: Path) -> list[bytes]:
    # as bytes, because NaN does not equal itself
    return [msgspec.msgpack.encode(entry) for entry in training_journal.entries(root, 3, "base")]


def _entry(content: bytes) -> bytes:
    body = zstandard.ZstdCompressor(level=1).compress(content)
    return training_journal.HEAD.pack(len(body), hashlib.sha256(body).digest()) + body


def _sums(files: dict[str, bytes]) -> bytes:
    return "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items()).encode()
