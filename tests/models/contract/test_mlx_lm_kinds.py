"""The contract of mlx-lm's models, for kinds that the fast path does not compute, beyond their sliding windows."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

from models.contract import kinds
from models.contract.groups import error, gradient, prompts, reference, sample, true_gradient
from models.contract.kinds import PARAMS, groups
from models.tiny_kinds import make_kind
from waggle.core.errors import ExportError, ModelError
from waggle.models.shared.mlx_lm import config as mlx_lm_config
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.storage import checkpoint, mlx_export

pytest.importorskip("mlx_lm")
import mlx.core as mx

from waggle.models.mlx_generic import self_check
from waggle.models.mlx_generic.policy import MlxLmPolicy
from waggle.models.shared.mlx_lm.model import Network

# By kind: how its prompts are cached. All of them run a prompt once, before its completions.
CACHING = {
    "gemma2": "equal",
    "gemma3": "merged",
    "gpt2": "merged",
    "gpt-oss": "merged",
    "lfm2": "merged",
    "mamba2": "merged",
    "mistral window": "merged",
    "olmo2": "merged",
    "phi3": "merged",
    "qwen2 window": "merged",
    "qwen3-moe": "merged",
    "qwen3.5": "merged",
    "starcoder2": "merged",
}
SAME_NAMES = ("gemma2", "gemma3", "mistral window", "olmo2", "phi3", "qwen2 window", "starcoder2")  # as in transformers
EXPERTS = ("gpt-oss", "qwen3-moe")


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    return {kind: make_kind(kind, tmp_path_factory.mktemp("model")) for kind in CACHING}


@pytest.fixture(params=sorted(CACHING))
def kind(request) -> str:
    return request.param


@pytest.fixture(autouse=True)
def on_the_cpu():
    before = mx.default_device()
    mx.set_default_device(mx.cpu)
    yield
    mx.set_default_device(before)


def test_the_self_check_finds_the_fastest_ways(folders, kind):
    ways = MlxLmPolicy(folders[kind]).ways
    assert (ways.layout, ways.caching) == ("shared", CACHING[kind])


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("text", [0, 1])
def test_a_way_that_gives_no_numbers_for_any_text_is_not_used(folders, monkeypatch, precision, text):
    compute, count = self_check.hidden_states, iter(range(2))

    def hidden_states(model, weights, group, layout):
        states = compute(model, weights, group, layout)
        return states * mx.nan if layout == "shared" and next(count) == text else states

    monkeypatch.setattr(self_check, "hidden_states", hidden_states)
    assert MlxLmPolicy(folders["olmo2"], training=TrainingMode(method="lora", precision=precision)).ways.layout == "rows"


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_log_probs_are_those_of_transformers(folders, kind, temperature):
    logprobs = MlxLmPolicy(folders[kind]).logprobs(groups(), temperature)
    kinds.assert_logprobs_of(reference(folders[kind]), logprobs, 1e-4, temperature)


@pytest.mark.parametrize("kind", SAME_NAMES)
def test_gradients_are_those_of_transformers(folders, kind):
    assert error(gradient(MlxLmPolicy(folders[kind]), groups()), true_gradient(folders[kind], groups())) < 1e-3


def test_the_log_probs_of_sampling_are_those_of_a_second_look(folders, kind):
    kinds.assert_a_second_look_agrees(MlxLmPolicy(folders[kind]))


def test_the_same_noise_gives_the_same_completions_however_the_prompts_are_split(folders, kind):
    kinds.assert_splitting_changes_nothing(MlxLmPolicy(folders[kind]))


def test_a_stop_is_heard_before_each_prompt(folders, kind):
    kinds.assert_stops_at(MlxLmPolicy(folders[kind]), 2)


@pytest.mark.parametrize("method", ["full", "lora"])
def test_a_policy_resumes_from_what_it_saved(folders, kind, tmp_path, method):
    kinds.assert_resumes(lambda: MlxLmPolicy(folders[kind], training=TrainingMode(method=method)), tmp_path)


@pytest.mark.parametrize("method", ["full", "lora"])
def test_pieces_and_recomputed_activations_give_the_gradient_of_the_whole(folders, kind, method):
    whole = gradient(MlxLmPolicy(folders[kind], training=TrainingMode(method)), groups())
    for training in (TrainingMode(method, parts=1 << 20), TrainingMode(method, recompute=True)):
        assert error(gradient(MlxLmPolicy(folders[kind], training=training), groups()), whole) < 1e-3


def test_recomputing_runs_each_layer_once_more(folders, monkeypatch):
    from mlx_lm.models import phi3

    usual, calls = phi3.TransformerBlock.__call__, []
    monkeypatch.setattr(phi3.TransformerBlock, "__call__", lambda *each, **more: calls.append(1) or usual(*each, **more))
    counts = []
    for recompute in (False, True):
        policy = MlxLmPolicy(folders["phi3"], training=TrainingMode(recompute=recompute))
        calls.clear()
        policy.step(groups(), PARAMS)
        counts.append(len(calls))
    assert counts[1] == 2 * counts[0]


@pytest.mark.parametrize("method", ["full", "lora"])
def test_an_export_is_a_folder_of_transformers_with_what_was_learned(folders, kind, tmp_path, method):
    policy = MlxLmPolicy(folders[kind], training=TrainingMode(method=method))
    learned = kinds.learn_and_save(policy, tmp_path / "saved")
    (tmp_path / "exported").mkdir()
    folder, _ = checkpoint.newest(tmp_path / "saved", "b")
    mlx_export.write_model(folders[kind], folder, tmp_path / "exported", adapted=method == "lora")
    kinds.assert_exported(tmp_path / "exported", folders[kind], learned, 1e-4)


def test_saved_weights_are_the_file_of_a_model(folders, kind, tmp_path):
    kinds.assert_saved_weights_are_a_model(MlxLmPolicy, folders[kind], tmp_path)


def test_adapters_have_the_names_and_the_beginning_that_they_have_on_torch(folders, kind):
    from waggle.models.generic.policy import GenericPolicy  # before peft, which would let bitsandbytes warn

    pytest.importorskip("peft")
    ours = MlxLmPolicy(folders[kind], training=TrainingMode("lora")).state()[0]
    theirs = GenericPolicy(folders[kind], training=TrainingMode("lora")).state()[0]
    shared = ours.keys() & theirs.keys()
    assert len(shared) >= 0.9 * len(theirs), theirs.keys() - ours.keys()
    assert not any(".gate." in name or ".router." in name for name in ours), "no router of a mixture"
    for name in shared:
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


@pytest.mark.parametrize(("scale", "is_exported"), [(1.0, True), (-1.0, True), (2.0, False), (0.5, False)])
def test_a_change_that_would_have_another_length_in_the_files_is_not_exported(scale, is_exported):
    """The transpose is the inverse only if `sanitize` moves numbers about, or changes their signs."""
    stored, change = {"in.file": mx.ones((2, 3))}, mx.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    network = Network(None, {}, {}, lambda arrays: {"in.module": scale * arrays["in.file"].T})
    if not is_exported:
        with pytest.raises(ExportError, match="another form"):
            mlx_export._in_files(network, stored, {"in.module": change.T})
        return
    ((_, back),) = mlx_export._in_files(network, stored, {"in.module": change.T}).values()
    np.testing.assert_array_equal(np.array(back), scale * np.array(change))


def test_an_optimizer_step_keeps_no_second_copy_of_the_weights(folders, kind):
    """What the network still held would be the weights of the step before."""
    policy = MlxLmPolicy(folders[kind], training=TrainingMode(recompute=True))
    policy.step(groups(), PARAMS)
    policy.logprobs(groups(), 1.0)
    sample(policy, prompts(2), group_size=2)
    still_there = [slot.name for slot in policy._model._slots if dict.__getitem__(slot.module, slot.key).size]
    assert still_there == []


def test_the_number_of_weights_is_counted_in_the_files(folders, kind):
    counted = sum(array.numel() for array in load_file(folders[kind] / "model.safetensors").values())
    assert mlx_lm_config.read(folders[kind]).number_of_weights == counted == MlxLmPolicy(folders[kind]).parameters


def test_bfloat16_is_computed_and_kept(folders, kind):
    if kind in EXPERTS:
        with pytest.raises(ModelError, match="only supports float32"):  # which only MLX on a CPU says
            MlxLmPolicy(folders[kind], training=TrainingMode("full", "bfloat16"))
        return
    for method in ("full", "lora"):
        policy = MlxLmPolicy(folders[kind], training=TrainingMode(method, "bfloat16"))
        assert policy.step(groups(), PARAMS).applied
        assert len(sample(policy, prompts(2), group_size=2)) == 2
