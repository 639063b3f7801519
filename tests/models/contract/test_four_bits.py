"""The contract of layers in 4 bits, with real bitsandbytes on the CPU: adapters learn beside them, resume and are exported."""

from pathlib import Path

import numpy as np
import pytest
import torch

from models.contract.groups import batches, prompts, sample
from models.tiny_kinds import make_kind
from waggle.models.backend import DeviceChoice, open_generic
from waggle.models.generic.policy import GenericPolicy
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.storage import checkpoint, export
from waggle.rl.batch import StepParams, nothing

KINDS = ("llama", "gemma3", "qwen3-moe")
FOUR_BITS = TrainingMode("qlora", "float32")
PARAMS = StepParams(learning_rate=1e-2)


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    return {kind: make_kind(kind, tmp_path_factory.mktemp("model")) for kind in KINDS}


@pytest.fixture(params=KINDS)
def folder(request, folders) -> Path:
    return folders[request.param]


def opened(folder: Path, training: TrainingMode = FOUR_BITS) -> GenericPolicy:
    return open_generic(folder, DeviceChoice("torch", "cpu", ""), 1, training, nothing)


def test_linear_layers_take_half_a_byte_for_each_weight(folder):
    layers = [part for part in opened(folder)._model._network.modules() if type(part).__name__ == "Linear4bit"]
    assert layers
    for layer in layers:
        assert layer.weight.dtype == torch.uint8
        assert layer.weight.numel() == layer.in_features * layer.out_features / 2


def test_log_probs_are_near_those_of_the_whole_weights(folder):
    whole, rounded = (np.concatenate(opened(folder, mode).logprobs(batches(), 1.0)) for mode in (TrainingMode("lora"), FOUR_BITS))
    error = np.sqrt(np.square(whole - rounded).mean())
    assert 1e-4 < error < 0.5 * whole.std()


def test_adapters_learn_and_resume(folder, tmp_path):
    policy = opened(folder)
    before = policy.logprobs(batches(), 1.0)
    for _ in range(3):
        assert policy.step(batches(), PARAMS).applied
    learned = policy.logprobs(batches(), 1.0)
    assert max(np.abs(new - old).max() for new, old in zip(learned, before, strict=True)) > 0.01
    assert all("lora" in name for name in policy.state()[0])
    saved = checkpoint.CheckpointState(round=1, step=3, epoch=1, charter="c", base="b", method="qlora")
    checkpoint.save(tmp_path, policy, saved)
    resumed = opened(folder)
    checkpoint.load(checkpoint.newest(tmp_path, "b")[0], resumed)
    for ours, theirs in zip(resumed.logprobs(batches(), 1.0), learned, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert len(sample(resumed, prompts(2), group_size=2)) == 2


def test_an_export_is_whole_and_in_the_precision_of_the_model(folder, tmp_path):
    policy = opened(folder)
    policy.step(batches(), PARAMS)
    saved = checkpoint.CheckpointState(round=1, step=1, epoch=1, charter="c", base="b", method="qlora")
    checkpoint.save(tmp_path / "saved", policy, saved)
    source = export.ExportSource(*checkpoint.newest(tmp_path / "saved", "b"), folder, "somebody/model")
    export.write(source, tmp_path / "exported")
    whole = opened(tmp_path / "exported", TrainingMode("lora"))
    adapted = opened(folder, TrainingMode("lora"))
    checkpoint.load(tmp_path / "saved" / checkpoint.newest(tmp_path / "saved", "b")[0].name, adapted)
    for ours, theirs in zip(whole.logprobs(batches(), 1.0), adapted.logprobs(batches(), 1.0), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-3)
