"""The decoders of the policy room: saved states, and the stop token of a model folder."""

import hashlib
import shutil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from safetensors.numpy import save
from tokenizers import Tokenizer, models

from waggle.errors import CheckpointError, ModelError
from waggle.lab.decoders import Decoder
from waggle.policy import checkpoint as checkpoints
from waggle.policy.checkpoint import Saved
from waggle.policy.tokenizer import load as load_tokenizer
from waggle.policy.training import Training

FILES = ("model.safetensors", "moments.safetensors", "state.json", checkpoints.SUMS)


class _Untrained:
    """A policy that takes any state."""

    steps = 0
    training = Training()

    def state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return {}, {}

    def restore(self, weights: dict[str, Any], moments: dict[str, Any], steps: int) -> None:
        pass


def checkpoint(scratch: Path) -> Decoder:
    """One file of a saved state: the first byte says which, and whether the sums are made to agree with it."""
    root = scratch / "checkpoints"
    state = msgspec.json.encode(Saved(round=3, step=2, epoch=1, charter="c", base="b"))
    weights = save({"w": np.zeros(2, np.float32)})
    whole = {"model.safetensors": weights, "moments.safetensors": weights, "state.json": state}

    def check(data: bytes) -> None:
        shutil.rmtree(root, ignore_errors=True)
        folder = root / "r00000003"
        folder.mkdir(parents=True)
        which, content = data[:1], data[1:]
        files = {**whole, FILES[(which or b"\0")[0] % 4]: content}
        sums = files.pop(checkpoints.SUMS, None) or _sums(files if which < b"\x80" else whole)
        for name, each in {**files, checkpoints.SUMS: sums}.items():
            (folder / name).write_bytes(each)
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
    """The config.json of a model that a person copied from anywhere."""
    Tokenizer(models.BPE()).save(str(scratch / "tokenizer.json"))
    path = scratch / "config.json"

    def check(data: bytes) -> None:
        path.write_bytes(data)
        try:
            assert isinstance(load_tokenizer(scratch).stop, int)
        except ModelError as refused:
            assert refused.advice

    return Decoder((b'{"eos_token_id": 2}', b'{"eos_token_id": [2, 3], "model_type": "llama"}'), check)


def _sums(files: dict[str, bytes]) -> bytes:
    return "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items()).encode()
