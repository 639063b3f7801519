"""Training modes: the gradient of each, that no update is lost, and that each resumes bit for bit."""

import hashlib
import itertools
import math
from dataclasses import replace

import msgspec
import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from transformers.optimization import Adafactor

from models.tiny_models import make_model
from models.torch.test_policy import STOP, batch_of, prompts, sample
from waggle.core.errors import CheckpointError, ModelError
from waggle.models.shared import weight_files
from waggle.models.shared.micro_batches import half_of, micro_batches
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.shared.weight_files import as_fp32
from waggle.models.storage import checkpoint, export
from waggle.models.storage.checkpoint import CheckpointState
from waggle.models.torch import optimizers
from waggle.models.torch.policy import TorchPolicy
from waggle.rl.batch import StepParams, TokenizedGroup, TrainingGroup

KINDS = ("llama", "mistral", "qwen2", "qwen3")
WAYS = [TrainingMode(method, precision) for method in ("full", "lean", "lora") for precision in ("float32", "bfloat16")]  # type: ignore[arg-type]
NO_STEP = StepParams(learning_rate=0.0)


def named(way: TrainingMode) -> str:
    return f"{way.method} {way.precision}"


def gradient_of(policy: TorchPolicy, batches: list[TrainingGroup], room: int = 1 << 20) -> dict[str, torch.Tensor]:
    policy._batch_size.room = room
    policy._gradient(batches, NO_STEP)
    return {name: parameter.grad.float().clone() for name, parameter in policy._parameters.items()}


def some_batches(policy: TorchPolicy, count: int = 2) -> list[TrainingGroup]:
    return [batch_of(prompt, row) for prompt, row in zip(prompts(count), sample(policy, prompts(count)), strict=True)]


def learn_something(policy: TorchPolicy, batches: list[TrainingGroup]) -> None:
    """Take steps, so that the adapters are not zero."""
    for _ in range(3):
        policy.step(batches, StepParams(learning_rate=1e-2))


@pytest.fixture(params=WAYS, ids=named)
def trained(request, tmp_path) -> TorchPolicy:
    policy = TorchPolicy(make_model("llama", tmp_path / "model"), training=request.param)
    learn_something(policy, some_batches(policy))
    return policy


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["full", "lean"])
def test_the_gradient_in_bfloat16_points_where_that_in_fp32_points(kind, method, tmp_path):
    folder = make_model(kind, tmp_path)
    exact = TorchPolicy(folder)
    batches = some_batches(exact)
    expected = gradient_of(exact, batches)
    gradients = gradient_of(TorchPolicy(folder, training=TrainingMode(method, "bfloat16")), batches)
    for name, gradient in expected.items():
        similarity = torch.cosine_similarity(gradient.flatten(), gradients[name].flatten(), 0)
        assert similarity > 0.98, name


@pytest.mark.parametrize("kind", KINDS)
def test_the_adapters_get_the_gradient_that_the_weights_would_get_through_them(kind, tmp_path):
    folder = make_model(kind, tmp_path)
    whole, lora = TorchPolicy(folder), TorchPolicy(folder, training=TrainingMode("lora"))
    batches = some_batches(whole)
    weights, adapters = gradient_of(whole, batches), gradient_of(lora, batches)
    for name in (name for name in adapters if "lora_B" in name):  # W + 2 B A: dB = 2 dW A^T
        a = lora._parameters[name.replace("lora_B", "lora_A")]
        expected = 2.0 * weights[name.replace("lora_B.", "")] @ a.detach().T
        torch.testing.assert_close(adapters[name], expected, rtol=1e-4, atol=1e-6)
        assert not adapters[name.replace("lora_B", "lora_A")].any(), "B is zero before training"


@pytest.mark.parametrize("method", ["full", "lora"])
def test_made_again_or_kept_activations_give_the_same_gradient(tmp_path, method):
    """Also before the first layer, where nothing is trained with adapters."""
    folder = make_model("qwen3", tmp_path)
    stored, recomputed = (TorchPolicy(folder, training=TrainingMode(method, recompute=recompute)) for recompute in (False, True))
    batches = some_batches(stored)
    expected, gradients = gradient_of(stored, batches), gradient_of(recomputed, batches)
    for name in expected:  # to the bit on most processors, not on all
        torch.testing.assert_close(expected[name], gradients[name], rtol=1e-5, atol=1e-7)


def test_a_group_without_advantage_may_be_left_out(tmp_path):
    policy = TorchPolicy(make_model("llama", tmp_path))
    first, second = some_batches(policy)
    silent = TrainingGroup(second.prompt, second.completions, 0 * second.advantage, second.weight)
    expected, gradients = gradient_of(policy, [first]), gradient_of(policy, [first, silent])
    for name in expected:
        torch.testing.assert_close(expected[name], gradients[name], rtol=1e-5, atol=1e-7)


def test_what_was_sampled_is_as_likely_as_learning_finds_it(trained):
    exact = trained.training.precision == "float32"
    for prompt, row in zip(prompts(3), sample(trained, prompts(3)), strict=True):
        (logprobs,) = trained.logprobs([batch_of(prompt, row)], 1.0)
        np.testing.assert_allclose(
            logprobs, np.concatenate([completion.logp for completion in row]), atol=2e-5 if exact else 0.25
        )


@pytest.mark.parametrize("way", WAYS, ids=named)
def test_what_is_rewarded_grows_likelier_what_is_punished_less_likely_and_the_value_head_learns(way, tmp_path):
    policy = TorchPolicy(make_model("llama", tmp_path), training=way)
    good, bad = np.array([5, 9, STOP], np.int32), np.array([8, 6, 7], np.int32)
    advantage = np.repeat(np.array([1, -1], np.float32), 3)
    batch = TrainingGroup(*prompts(1), (good, bad), advantage, np.full(6, 1 / 6, np.float32), returns=np.ones(6, np.float32))
    (before,) = policy.logprobs([batch], 1.0)
    for _ in range(20):
        assert policy.step([batch], StepParams(learning_rate=3e-3)).applied
    (after,), (values,) = policy.logprobs([batch], 1.0), policy.values([batch])
    assert after[:3].sum() > before[:3].sum() + 1.0
    assert after[3:].sum() < before[3:].sum() - 1.0
    assert values.mean() > 0.3


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_adafactor_is_that_of_transformers_and_leaves_the_gradient_alone(precision):
    noise = torch.Generator().manual_seed(0)
    sizes = {"matrix": (6, 5), "vector": (7,)}
    ours, theirs = (
        {name: torch.nn.Parameter(torch.linspace(-1, 1, math.prod(size)).view(size)) for name, size in sizes.items()}
        for _ in range(2)
    )
    for parameter in ours.values():
        parameter.data = parameter.data.to(precision)
    optimiser = optimizers.Adafactor(ours)
    reference = Adafactor(theirs.values(), lr=1e-2, scale_parameter=False, relative_step=False)
    for _ in range(5):
        gradients = {name: torch.randn(size, generator=noise).to(precision) for name, size in sizes.items()}
        for name, gradient in gradients.items():
            ours[name].grad, theirs[name].grad = gradient.clone(), gradient.float()
        optimiser.step(1e-2)
        reference.step()
        assert all(torch.equal(ours[name].grad, gradient) for name, gradient in gradients.items())
    for name, parameter in theirs.items():
        close = 1e-6 if precision == torch.float32 else 0.02
        torch.testing.assert_close(ours[name].float(), parameter, rtol=0, atol=close)


@pytest.mark.parametrize("way", WAYS, ids=named)
def test_many_steps_too_small_for_bfloat16_move_the_weights_as_far_as_they_should(way, tmp_path):
    policy = TorchPolicy(make_model("llama", tmp_path), training=way)
    names = [name for name in policy._parameters if name.endswith(("proj.weight", "lora_A.weight"))]
    before = {name: policy._parameters[name].detach().float().clone() for name in names}
    for _ in range(50):
        for parameter in policy._parameters.values():
            parameter.grad = torch.ones_like(parameter)
        policy._optimizer.step(1e-6)
    moved = torch.cat([(policy._parameters[name].detach().float() - before[name]).flatten() for name in names])
    assert float(moved.mean()) == pytest.approx(-50e-6, rel=0.1)  # to nearest, bfloat16 would not have moved at all


def test_adamw_never_gets_weights_that_it_would_lose_its_steps_in():
    lossy = {"w": torch.nn.Parameter(torch.zeros(2, dtype=torch.bfloat16))}
    with pytest.raises(ModelError, match="lose its updates"):
        optimizers.AdamW(lossy)


def test_a_saved_state_goes_on_bit_for_bit(trained, tmp_path):
    batches = some_batches(trained)
    checkpoint.save(tmp_path / "saved", trained, CheckpointState(round=1, step=trained.steps, epoch=0, charter="c", base="b"))
    other = TorchPolicy(tmp_path / "model", training=trained.training)
    saved, aside = checkpoint.load_newest(tmp_path / "saved", other, "b")
    assert aside == []
    assert (saved.method, saved.optimizer) == (trained.training.method, trained.training.optimizer)
    assert checkpoint.method_of(tmp_path / "saved") == trained.training.method
    for each in (trained, other):
        each.step(batches, StepParams(learning_rate=1e-3))
    for first, two in zip(trained.state(), other.state(), strict=True):
        assert first.keys() == two.keys()
        assert all(np.array_equal(array, two[name]) for name, array in first.items())


def test_weights_in_bfloat16_are_saved_as_such_and_those_that_were_saved_widened_are_read_too(tmp_path):
    folder = make_model("llama", tmp_path / "model")
    lean = TorchPolicy(folder, training=TrainingMode("lean", "bfloat16"))
    learn_something(lean, some_batches(lean))
    checkpoint.save(tmp_path / "saved", lean, CheckpointState(round=1, step=3, epoch=0, charter="c", base="b"))
    (folder_of_round,) = (tmp_path / "saved").glob("r*")
    assert (folder_of_round / "model.safetensors").stat().st_size < 2.2 * lean.parameters
    weights, _ = lean.state()
    save_file({name: as_fp32(bits) for name, bits in weights.items()}, folder_of_round / "model.safetensors")  # as format 1 did
    state = CheckpointState(round=1, step=3, epoch=0, charter="c", base="b", method="lean", optimizer="adafactor")
    (folder_of_round / "state.json").write_bytes(msgspec.json.encode(state))
    names = ("model.safetensors", "moments.safetensors", "state.json")
    sums = {name: hashlib.sha256((folder_of_round / name).read_bytes()).hexdigest() for name in names}
    (folder_of_round / "SHA256SUMS").write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()))
    for way in (TrainingMode("lean", "bfloat16"), TrainingMode("lean"), TrainingMode()):
        other = TorchPolicy(folder, training=way)
        saved, aside = checkpoint.load_newest(tmp_path / "saved", other, "b")
        assert (saved.format, aside) == (1, [])
        for name, array in other.state()[0].items():
            assert np.array_equal(as_fp32(array), as_fp32(weights[name])), name


@pytest.mark.parametrize("way", [TrainingMode("lean"), TrainingMode()], ids=named)
def test_what_was_saved_in_bfloat16_goes_on_in_fp32(way, tmp_path):
    folder = make_model("llama", tmp_path / "model")
    lean = TorchPolicy(folder, training=TrainingMode("lean", "bfloat16"))
    learn_something(lean, some_batches(lean))
    checkpoint.save(tmp_path / "saved", lean, CheckpointState(round=1, step=3, epoch=0, charter="c", base="b"))
    other = TorchPolicy(folder, training=way)
    saved, aside = checkpoint.load_newest(tmp_path / "saved", other, "b")
    assert (saved.format, aside) == (2, [])
    assert all(np.array_equal(array, as_fp32(lean.state()[0][name])) for name, array in other.state()[0].items())


@pytest.mark.parametrize("way", [TrainingMode("lean"), TrainingMode()], ids=named)
def test_little_that_was_learned_in_fp32_is_not_lost_where_it_goes_on_in_bfloat16(way, tmp_path):
    folder = make_model("llama", tmp_path / "model")
    before = TorchPolicy(folder, training=TrainingMode("lean", "bfloat16")).state()[0]
    fine = TorchPolicy(folder, training=way)
    weights, moments = fine.state()
    step = 1e-2  # of the distance of two numbers in bfloat16, which is 1/128 or less of their size
    moved = {name: as_fp32(before[name]) * np.float32(1 + step / 128) for name in weights}
    fine.restore(dict(moved), moments, 1)
    checkpoint.save(tmp_path / "saved", fine, CheckpointState(round=1, step=3, epoch=0, charter="c", base="b"))
    coarse = TorchPolicy(folder, training=TrainingMode("lean", "bfloat16"))
    checkpoint.load_newest(tmp_path / "saved", coarse, "b")
    after = coarse.state()[0]
    went = {name: (as_fp32(after[name]) - as_fp32(before[name])) * np.sign(as_fp32(before[name])) for name in after}
    learned = sum(float(each.sum(dtype=np.float64)) for each in went.values())
    moved_in_all = sum(float(np.abs(moved[name] - as_fp32(before[name])).sum(dtype=np.float64)) for name in after)
    assert learned == pytest.approx(moved_in_all, rel=0.25), "by the nearest, nothing of it would be left"


@pytest.mark.parametrize("trained", [way for way in WAYS if way.precision == "float32"], ids=named, indirect=True)
def test_an_exported_model_says_what_the_trained_one_says(trained, tmp_path):
    checkpoint.save(tmp_path / "saved", trained, CheckpointState(round=1, step=3, epoch=0, charter="c", base="b"))
    folder, saved = checkpoint.newest(tmp_path / "saved", "b")
    export.write(export.ExportSource(folder, saved, tmp_path / "model", "tests/model"), tmp_path / "exported")
    plain = TorchPolicy(tmp_path / "exported")
    batches = some_batches(plain)
    for first, two in zip(trained.logprobs(batches, 1.0), plain.logprobs(batches, 1.0), strict=True):
        np.testing.assert_allclose(first, two, atol=5e-5)


def test_adapters_and_whole_weights_do_not_go_on_from_each_other(tmp_path):
    folder = make_model("llama", tmp_path / "model")
    ways = {method: TorchPolicy(folder, training=TrainingMode(method)) for method in ("full", "lora")}  # type: ignore[arg-type]
    for mine, other in itertools.permutations(ways):
        checkpoint.save(tmp_path / mine, ways[mine], CheckpointState(round=1, step=0, epoch=0, charter="c", base="b"))
        with pytest.raises(CheckpointError, match=f"trained as {mine}, not as {other}"):
            checkpoint.load_newest(tmp_path / mine, ways[other], "b")


@pytest.mark.parametrize("way", WAYS, ids=named)
def test_what_others_open_meanwhile_changes_nothing(way, tmp_path, request):
    """Some libraries open a model in bfloat16 by making that what torch makes numbers of, in every thread."""
    folder = make_model("llama", tmp_path / "model")
    batches = [replace(batch, returns=np.ones(len(batch.advantage), np.float32)) for batch in some_batches(TorchPolicy(folder))]

    def lived() -> list[object]:
        policy = TorchPolicy(folder, training=way)
        results: list[object] = [(completion.tokens, completion.logp) for row in sample(policy, prompts(2)) for completion in row]
        for _ in range(2):
            results += [
                policy.step(batches, StepParams(learning_rate=1e-3)),
                policy.logprobs(batches, 1.0),
                policy.values(batches),
            ]
        return [*results, *policy.state()]

    alone = lived()
    torch.set_default_dtype(torch.bfloat16)
    request.addfinalizer(lambda: torch.set_default_dtype(torch.float32))
    np.testing.assert_equal(lived(), alone)


def test_another_optimiser_begins_its_moments_anew_and_those_of_before_are_not_read(tmp_path, monkeypatch):
    folder = make_model("llama", tmp_path / "model")
    full, lean = TorchPolicy(folder), TorchPolicy(folder, training=TrainingMode("lean"))
    learn_something(full, some_batches(full))
    checkpoint.save(tmp_path / "saved", full, CheckpointState(round=1, step=3, epoch=0, charter="c", base="b"))
    read, reading = list[str](), weight_files.StoredArray.read
    monkeypatch.setattr(weight_files.StoredArray, "read", lambda stored: read.append(stored.path.name) or reading(stored))
    saved, aside = checkpoint.load_newest(tmp_path / "saved", lean, "b")
    assert read.count(checkpoint.MOMENTS) == 1, "how often it stepped"
    assert (saved.optimizer, aside, lean.steps) == ("adamw", [], 3)
    assert lean.step(some_batches(lean), StepParams(learning_rate=1e-3)).applied
    assert lean.state()[1]["steps"] == 1


def test_pieces_hold_every_completion_once_and_as_many_tokens_as_fit():
    text = TokenizedGroup(np.arange(5, dtype=np.int32), tuple(np.full(n, n, np.int32) for n in (3, 4, 9, 2)))
    parts = list(micro_batches([text, text], 14))
    assert [[[len(ids) for ids in piece.completions] for _, piece in part] for part in parts] == [
        [[3, 4]], [[9]], [[2]], [[3, 4]], [[9]], [[2]],
    ]  # fmt: skip
    assert [number for part in parts for number, _ in part] == [0, 0, 0, 1, 1, 1]
    assert len(list(micro_batches([text, text], 46))) == 1
    assert half_of([text], 100) == 11
    assert half_of([text.part(0, 1)], 100) is None


def test_a_policy_that_samples_to_its_stop_token_can_be_trained_any_way(trained):
    rows = sample(trained, prompts(2))
    assert all(STOP not in completion.tokens[:-1] for row in rows for completion in row)
    assert trained.step(some_batches(trained), StepParams(learning_rate=1e-4)).applied
