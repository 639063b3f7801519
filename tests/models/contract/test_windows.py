"""The contract of the fast path for kinds with sliding windows, beyond their length, and for Phi 3 and Gemma 3 as a whole."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from transformers import AutoModelForCausalLM

from models.contract import kinds
from models.contract.backends import BACKENDS, Backend
from models.contract.groups import batches, error, gradient, prompts, reference, sample
from models.tiny_models import WINDOW, WINDOWED, make_model
from waggle.models import memory_fit
from waggle.models.shared import lora
from waggle.models.shared.configuration import model_config
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.storage import checkpoint, export, gguf_export
from waggle.rl.batch import StepParams, TokenizedGroup

KINDS = (*sorted(WINDOWED), "phi3")
FAST = [backend for backend in BACKENDS if backend.name in ("torch", "cuda", "mlx", "metal")]
PARAMS = StepParams(learning_rate=1e-3)


@pytest.fixture(params=FAST, ids=lambda backend: backend.name)
def backend(request):
    with request.param.at_work() as ready:
        yield ready


@pytest.fixture(params=KINDS)
def folder(request, folders) -> Path:
    return folders[request.param]


@pytest.mark.parametrize("kind", KINDS)
def test_a_head_of_its_own_means_what_it_means_in_transformers(backend, kind, tmp_path):
    folder = make_model(kind, tmp_path, tied=False)
    logprobs = backend.open(folder).logprobs(kinds.groups(), 1.0)
    kinds.assert_logprobs_of(reference(folder), logprobs, backend.logp)


def test_the_log_probs_of_sampling_are_those_of_a_second_look_beyond_the_window(backend, folder):
    policy, some = backend.open(folder), prompts(4)
    rows = sample(policy, some, group_size=4, length=40)
    assert max(len(completion.tokens) for row in rows for completion in row) > 3 * WINDOW
    texts = [TokenizedGroup(prompt, tuple(each.tokens for each in row)) for prompt, row in zip(some, rows, strict=True)]
    for row, flat in zip(rows, policy.logprobs(texts, 1.0), strict=True):
        np.testing.assert_allclose(np.concatenate([each.logp for each in row]), flat, atol=backend.logp)


def test_the_same_noise_gives_the_same_completions_however_the_prompts_are_split(backend, folder):
    kinds.assert_splitting_changes_nothing(backend.open(folder))


def test_rows_that_ended_are_dropped_without_a_trace_in_the_others(backend, folder, monkeypatch):
    runs = []
    for below in (0.0, 1.0):  # never, and in every column
        monkeypatch.setattr(backend.rows, "drop_below", below)
        runs.append([completion for row in sample(backend.open(folder), prompts()) for completion in row])
    for whole, dropped in zip(*runs, strict=True):
        np.testing.assert_array_equal(whole.tokens, dropped.tokens)
        np.testing.assert_allclose(whole.logp, dropped.logp, atol=backend.logp)
    assert len({len(completion.tokens) for completion in runs[0] if completion.ended}) >= 3, "rows must end in several columns"


def test_pieces_and_recomputed_activations_give_the_gradient_of_the_whole(backend, folder):
    whole = gradient(backend.open(folder), batches())
    for training in ({"parts": 1 << 20}, {"recompute": True}):
        assert error(gradient(backend.open(folder, **training), batches()), whole) < backend.gradient


def test_a_window_that_no_text_outgrows_costs_nothing(backend, folders, tmp_path):
    """The masks are those of a model without windows, to the bit."""
    (tmp_path / "model.safetensors").write_bytes((folders["mistral window"] / "model.safetensors").read_bytes())
    table = json.loads((folders["mistral window"] / "config.json").read_text())
    logprobs = []
    for window in (None, 4096, WINDOW):
        (tmp_path / "config.json").write_text(json.dumps(table | {"sliding_window": window}))
        logprobs.append(np.concatenate(backend.open(tmp_path).logprobs(batches(), 1.0)))
    if backend.exact:
        np.testing.assert_array_equal(logprobs[0], logprobs[1])
    assert np.abs(logprobs[0] - logprobs[2]).max() > 1e-2, "the texts are within the window: the tests show nothing"


def test_bfloat16_is_near_float32(backend, folder):
    exact, rounded = (backend.open(folder, method="lora", precision=precision) for precision in ("float32", "bfloat16"))
    for ours, theirs in zip(rounded.logprobs(batches(), 1.0), exact.logprobs(batches(), 1.0), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=0.1)
    assert rounded.step(batches(), PARAMS).applied
    assert len(sample(rounded, prompts(2), group_size=2)) == 2


@pytest.mark.parametrize("method", ["full", "lora"])
def test_a_policy_resumes_from_what_it_saved(backend, folder, tmp_path, method):
    if not backend.exact:
        pytest.skip("its sums are not the same to the bit")
    kinds.assert_resumes(lambda: backend.open(folder, method=method), tmp_path)


def policy_of_a_library(library: str, folder: Path, training: TrainingMode):
    if library == "mlx-lm":
        pytest.importorskip("mlx_lm")
        from waggle.models.mlx_generic.policy import MlxLmPolicy

        return MlxLmPolicy(folder, training=training)
    if training.is_adapted:
        pytest.importorskip("peft")
    from waggle.models.generic.policy import GenericPolicy

    return GenericPolicy(folder, training=training)


@pytest.mark.parametrize(
    ("library", "backend_name", "method"),
    [
        ("transformers", "torch", "full"), ("transformers", "torch", "lean"), ("transformers", "torch", "lora"),
        ("transformers", "mlx", "full"), ("mlx-lm", "mlx", "full"), ("mlx-lm", "mlx", "lora"), ("mlx-lm", "torch", "full"),
    ],
)  # fmt: skip
def test_what_a_library_trained_before_goes_on(library, backend_name, method, folder, tmp_path):
    """Homes of earlier versions trained these kinds through transformers or mlx-lm: names, adapters and moments are the same."""
    backend = next(backend for backend in FAST if backend.name == backend_name)
    with backend.at_work():
        first = policy_of_a_library(library, folder, TrainingMode(method))
        some = [replace(group, returns=np.ones(len(group.advantage), np.float32)) for group in kinds.groups()]
        for _ in range(2):
            assert first.step(some, PARAMS).applied
        state = checkpoint.CheckpointState(
            round=1, step=first.steps, epoch=1, charter="c", base="b", method=method, library=library,
            optimizer=first.training.optimizer,
        )  # fmt: skip
        checkpoint.save(tmp_path, first, state)
        second = backend.open(folder, method=method)
        assert checkpoint.load_newest(tmp_path, second, "b") == (state, [])
        assert second.steps == 2
        for ours, theirs in zip(second.state(), first.state(), strict=True):
            assert ours.keys() == theirs.keys()
            for name, array in ours.items():
                np.testing.assert_array_equal(array, theirs[name], err_msg=name)
        for ours, theirs in zip(second.logprobs(some, 1.0), first.logprobs(some, 1.0), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-4)
        loss, expected = (policy.step(some, PARAMS) for policy in (second, first))
        assert loss.loss == pytest.approx(expected.loss, abs=1e-4)
        assert loss.gradient_norm == pytest.approx(expected.gradient_norm, rel=1e-3)


@pytest.mark.parametrize("method", ["full", "lora"])
def test_an_export_is_a_folder_of_transformers_with_what_was_learned(folder, tmp_path, method):
    """Under the names of the files: Phi 3's queries, keys and values stay one weight."""
    policy = FAST[0].open(folder, method=method)
    learned = kinds.learn_and_save(policy, tmp_path / "saved")
    source = export.ExportSource(*checkpoint.newest(tmp_path / "saved", "b"), folder, "somebody/model")
    files = export.write(source, tmp_path / "exported", for_programs=True)
    assert files.gguf == ""
    assert "GGUF" in files.no_gguf
    kinds.assert_exported(tmp_path / "exported", folder, learned, 1e-4)
    if method == "lora":
        peft = pytest.importorskip("peft")
        base = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        adapted = peft.PeftModel.from_pretrained(base, tmp_path / "exported/adapter").eval()
        kinds.assert_logprobs_of(adapted, learned, 1e-4)


def test_fused_layers_are_trained_and_adapted_as_one(folders):
    backend: Backend = FAST[0]
    with safe_open(folders["phi3"] / "model.safetensors", "np") as file:
        names = set(file.keys())
    assert set(backend.open(folders["phi3"]).weights()) == names
    adapters = {
        name.rpartition(".lora_")[0].rpartition(".")[2] for name in backend.open(folders["phi3"], method="lora").weights()
    }
    assert adapters == {"qkv_proj", "o_proj", "gate_up_proj", "down_proj"}


def test_the_memory_fit_counts_weights_and_adapters_of_every_kind(folder):
    """Without norms and biases, as it does for all kinds of the fast path."""
    shape = model_config.read(folder)
    assert memory_fit.weights_of(shape) == sum(math.prod(size) for size in shape.weights().values() if len(size) == 2)
    adapters = FAST[0].open(folder, method="lora").weights()
    assert sum(array.size for array in adapters.values()) == lora.RANK * memory_fit._widths(shape)


@pytest.mark.parametrize(
    ("kind", "says"), [("mistral window", "with sliding windows"), ("phi3", "of type phi3"), ("gemma3", "of type gemma3_text")]
)
def test_no_gguf_file_is_written_that_programs_would_compute_wrongly(folders, kind, says):
    assert says in gguf_export.refusal(folders[kind])
