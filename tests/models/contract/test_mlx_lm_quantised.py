"""Models that mlx-lm quantised: opened as they are, trained with adapters, exported in plain numbers."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

pytest.importorskip("mlx_lm")
import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten, tree_unflatten

from models.contract.groups import batches, prompts, reference, sample, true_logprobs
from models.tiny_kinds import make_kind
from waggle.core.errors import ModelError
from waggle.models import memory_fit
from waggle.models.memory_fit import DeviceCapacity, Workload
from waggle.models.mlx_generic.policy import MlxLmPolicy
from waggle.models.shared import generic_config
from waggle.models.shared.mlx_lm import config as mlx_lm_config
from waggle.models.shared.mlx_lm import model as mlx_lm_model
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.storage import checkpoint, export
from waggle.rl.batch import StepParams

GROUP, BITS = 32, 4
KINDS = ("llama", "gemma3", "qwen3", "phi3", "lfm2", "qwen3-moe")
PLAIN_NAMES = ("llama", "gemma3", "qwen3", "phi3")  # whose arrays MLX's files call as transformers does
LORA = TrainingMode("lora")


def quantize(plain: Path, folder: Path, mode: str = "affine") -> Path:
    """Write a model as mlx-lm's `convert` does: packed linear layers and embeddings, in the names of its module."""
    folder.mkdir()
    network = mlx_lm_model.load(plain)
    network.module.update(tree_unflatten(list(network.weights.items())))
    nn.quantize(
        network.module, GROUP, BITS, mode=mode,
        class_predicate=lambda _, module: hasattr(module, "to_quantized") and module.weight.shape[-1] % GROUP == 0,
    )  # fmt: skip
    mx.save_safetensors(str(folder / "model.safetensors"), dict(tree_flatten(network.module.parameters())))
    packed = {"group_size": GROUP, "bits": BITS} | ({} if mode == "affine" else {"mode": mode})
    table = json.loads((plain / "config.json").read_text()) | {"quantization": packed, "quantization_config": packed}
    (folder / "config.json").write_text(json.dumps(table))
    return folder


@pytest.fixture(autouse=True)
def on_the_cpu():
    before = mx.default_device()
    mx.set_default_device(mx.cpu)
    yield
    mx.set_default_device(before)


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    before = mx.default_device()
    mx.set_default_device(mx.cpu)
    packed: dict[str, Path] = {}
    for kind in KINDS:
        place = tmp_path_factory.mktemp("model")
        packed[kind] = quantize(make_kind(kind, place / "plain"), place / "packed")
    mx.set_default_device(before)
    return packed


def exported(policy: MlxLmPolicy, base: Path, place: Path) -> Path:
    saved = checkpoint.CheckpointState(round=1, step=policy.steps, epoch=1, charter="c", base="b", method="lora")
    checkpoint.save(place / "saved", policy, saved)
    export.write(export.ExportSource(*checkpoint.newest(place / "saved", "b"), base, "somebody/model"), place / "exported")
    return place / "exported"


@pytest.mark.parametrize("kind", KINDS)
def test_a_quantised_model_is_trained_with_adapters(folders, kind):
    policy = MlxLmPolicy(folders[kind], training=LORA)
    assert policy.ways.layout == "shared"
    before = policy.logprobs(batches(), 1.0)
    for _ in range(3):
        assert policy.step(batches(), StepParams(learning_rate=1e-2)).applied
    assert max(float(np.abs(a - b).max()) for a, b in zip(policy.logprobs(batches(), 1.0), before, strict=True)) > 0.01
    assert set(policy.state()[0]) == {name for name in policy.state()[0] if ".lora_" in name}
    assert len(sample(policy, prompts(2), group_size=2)) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_the_export_is_whole_in_plain_numbers(folders, kind, tmp_path):
    """An export of mlx-lm's stacked experts and moved convolutions is one for MLX; all others are one for transformers too."""
    policy = MlxLmPolicy(folders[kind], training=LORA)
    for _ in range(3):
        policy.step(batches(), StepParams(learning_rate=1e-2))
    learned = policy.logprobs(batches(), 1.0)
    folder = exported(policy, folders[kind], tmp_path)
    table = json.loads((folder / "config.json").read_text())
    assert "quantization" not in table
    assert "quantization_config" not in table
    assert {array.dtype for array in load_file(folder / "model.safetensors").values()} == {torch.float32}
    for ours, theirs in zip(MlxLmPolicy(folder).logprobs(batches(), 1.0), learned, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)
    if kind in PLAIN_NAMES:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        with torch.no_grad():
            for ours, group in zip(learned, batches(), strict=True):
                np.testing.assert_allclose(ours, true_logprobs(model, group).numpy(), atol=1e-4)


def test_a_quantised_model_means_what_its_plain_numbers_mean(folders, tmp_path):
    policy = MlxLmPolicy(folders["llama"], training=LORA)
    model = reference(exported(policy, folders["llama"], tmp_path))
    with torch.no_grad():
        for ours, group in zip(policy.logprobs(batches(), 1.0), batches(), strict=True):
            np.testing.assert_allclose(ours, true_logprobs(model, group).numpy(), atol=1e-4)


def test_other_packings_are_opened(tmp_path):
    folder = quantize(make_kind("llama", tmp_path / "plain"), tmp_path / "packed", "mxfp4")
    assert MlxLmPolicy(folder, training=LORA).step(batches(), StepParams(learning_rate=1e-3)).applied


def test_whole_weights_of_a_quantised_model_are_not_trained(folders):
    with pytest.raises(ModelError, match="trained with adapters only"):
        MlxLmPolicy(folders["llama"])


def test_memory_counts_the_packed_bytes_and_only_adapters_are_chosen(folders):
    configuration = generic_config.read_any(folders["llama"])
    assert isinstance(configuration, mlx_lm_config.MlxLmConfig)
    size = (folders["llama"] / "model.safetensors").stat().st_size
    assert configuration.packed_bytes == pytest.approx(size, rel=0.2)
    plain = mlx_lm_config.read(folders["llama"].parent / "plain").number_of_weights
    assert configuration.number_of_weights == pytest.approx(plain, rel=0.01)
    machine = DeviceCapacity(8_000_000_000, {"float32": 1e12, "bfloat16": 1e12}, "MLX", "metal")
    work = Workload(questions=4, groups=8, group_size=8, longest=64)
    assert memory_fit.choose(configuration, machine, work).training.method == "lora"
    with pytest.raises(ModelError, match="quantised for MLX"):
        memory_fit.choose(configuration, DeviceCapacity(8_000_000_000, machine.speeds), work)


@pytest.mark.parametrize(
    "packed",
    [{"group_size": 7, "bits": 4}, {"group_size": 32, "bits": 99}, {"group_size": 32, "bits": "four"},
     {"group_size": 32, "bits": 4, "mode": "secret"}, {"group_size": 32, "bits": 4, "model.layers.0.mlp.up_proj": {"bits": 4}},
     {"group_size": 64, "bits": 4}, {"group_size": 32, "bits": 8}],
)  # fmt: skip
def test_a_quantisation_that_is_none_is_refused(folders, tmp_path, packed):
    table = json.loads((folders["llama"] / "config.json").read_text()) | {"quantization": packed}
    (tmp_path / "config.json").write_text(json.dumps(table))
    (tmp_path / "model.safetensors").write_bytes((folders["llama"] / "model.safetensors").read_bytes())
    with pytest.raises(ModelError):
        MlxLmPolicy(tmp_path, training=LORA)
