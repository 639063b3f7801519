"""The contract of learning: the gradient of plain autograd, the updates of AdamW, and no half-taken steps."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from models.contract.backends import BACKENDS
from models.contract.groups import MOMENTUM, PAD, batches, error, gradient, true_gradient, true_logprobs
from models.contract.groups import reference as reference_model
from models.tiny_models import KINDS
from waggle.core.errors import MemoryShort, Stopped
from waggle.rl.batch import StepParams, TrainingGroup
from waggle.rl.objective import Clip, clipped_objective, is_clipped, sequence_reference


@pytest.mark.parametrize("kind", [*sorted(KINDS), "untied"])
def test_the_gradient_is_that_of_plain_autograd_on_separate_sequences(backend, folders, kind, figures):
    relative_error = error(gradient(backend.open(folders[kind]), batches()), true_gradient(folders[kind], batches()))
    if backend.name == "mlx":
        figures["gradient_relative_error"] = max(relative_error, figures.get("gradient_relative_error", 0.0))
    rounded = kind == "gemma3" and backend.name.startswith("mlx-lm")  # whose module scales embeddings by a number in bfloat16
    assert relative_error < (1e-3 if rounded else backend.gradient)


def test_groups_learned_from_in_pieces_give_the_gradient_of_the_whole(backend, llama):
    whole = gradient(backend.open(llama), batches())
    pieces = gradient(backend.open(llama, parts=1 << 20), batches())
    assert error(pieces, whole) < backend.gradient


def test_recomputing_activations_gives_the_same_gradient(backend, llama):
    stored = gradient(backend.open(llama), batches())
    recomputed = gradient(backend.open(llama, recompute=True), batches())
    assert error(recomputed, stored) < backend.gradient / 10


def test_loss_and_clipped_share_are_those_of_numpy(backend, llama):
    policy, some = backend.open(llama), batches()
    noise = np.random.default_rng(3)
    now = policy.logprobs(some, 0.8)
    old = [logp + noise.normal(size=len(logp), scale=0.3).astype(np.float32) for logp in now]
    clip = Clip(0.1, 0.25)
    metrics = policy.step(
        [replace(batch, old_logp=logp) for batch, logp in zip(some, old, strict=True)],
        StepParams(learning_rate=0.0, temperature=0.8, clip=clip),
    )
    parts = list(zip(now, old, [batch.advantage for batch in some], [batch.weight for batch in some], strict=True))
    loss = sum(clipped_objective(np, *part, clip) for part in parts)
    share = sum((is_clipped(logp, before, pull, clip) * weight).sum() for logp, before, pull, weight in parts)
    assert share > 0.1
    assert metrics.loss == pytest.approx(float(loss), abs=10 * backend.logp)
    assert metrics.clip_fraction == pytest.approx(float(share), abs=10 * backend.logp)


def moved(policy, some, scale: float) -> list[TrainingGroup]:
    """The groups with old log-probs at this distance from the policy's, and advantages and weights that a rule could give."""
    noise, groups = np.random.default_rng(3), []
    for batch, logp in zip(some, policy.logprobs(some, 0.8), strict=True):
        lengths = np.array(list(map(len, batch.completions)))
        groups.append(
            replace(
                batch,
                old_logp=logp + noise.normal(size=len(logp), scale=scale).astype(np.float32),
                advantage=np.repeat(noise.normal(size=len(lengths)), lengths).astype(np.float32),
                weight=np.repeat(1 / (len(some) * len(lengths) * lengths), lengths).astype(np.float32),
            )
        )
    return groups


@pytest.mark.parametrize("parts", [1, 1 << 20], ids=["whole", "in-pieces"])
def test_the_ratio_of_a_whole_completion_is_that_of_numpy(backend, llama, parts):
    """GSPO: loss and clipped share against numpy, the gradient against autograd through the geometric mean."""
    policy, clip = backend.open(llama, parts=parts), Clip(0.05, 0.08)
    some = moved(policy, batches(), 0.3)
    params = StepParams(learning_rate=0.0, temperature=0.8, clip=clip, ratio="sequence", max_gradient_norm=1e9)
    now = policy.logprobs(some, 0.8)
    metrics = policy.step(some, params)
    loss = share = 0.0
    for logp, batch in zip(now, some, strict=True):
        reference = sequence_reference(np, logp, batch.old_logp, list(map(len, batch.completions)))
        loss += float(clipped_objective(np, logp, reference, batch.advantage, batch.weight, clip))
        share += float((is_clipped(logp, reference, batch.advantage, clip) * batch.weight).sum())
    assert 0.1 < share < 0.9
    assert metrics.loss == pytest.approx(loss, abs=10 * backend.logp)
    assert metrics.clip_fraction == pytest.approx(share, abs=10 * backend.logp)

    model, total = reference_model(llama), torch.zeros(())
    for batch in some:
        lengths = list(map(len, batch.completions))
        log_ratio = true_logprobs(model, batch, 0.8) - torch.tensor(batch.old_logp)
        for part, advantage in zip(log_ratio.split(lengths), torch.tensor(batch.advantage).split(lengths), strict=True):
            ratio = torch.exp(part.mean())
            pull = torch.minimum(ratio * advantage[0], torch.clip(ratio, 1 - clip.low, 1 + clip.high) * advantage[0])
            total = total - pull / (len(some) * len(lengths))
    total.backward()
    expected = {name: parameter.grad.numpy() for name, parameter in model.named_parameters()}
    ours = {
        name.removeprefix("exp_avg."): moment / (1 - MOMENTUM)
        for name, moment in policy.state()[1].items()
        if name.startswith("exp_avg.")
    }
    assert error(ours, expected) < 10 * backend.gradient


def test_a_ratio_of_one_is_the_same_for_tokens_and_for_completions(backend, llama):
    first, second = backend.open(llama), backend.open(llama)
    for policy, ratio in ((first, "token"), (second, "sequence")):
        policy.step(batches(), StepParams(learning_rate=1e-2, ratio=ratio))
    for name, weight in first.state()[0].items():
        np.testing.assert_array_equal(second.state()[0][name], weight, err_msg=name)


def test_a_value_head_that_has_moved_far_is_held_back(backend, llama):
    """At V = 0, values of before of -1 and .1 and a clip of .2: max((0 - R)^2, (V_old +- .2 - R)^2)."""
    returns, before = np.array([1.0, -2.0, 1.0], np.float32), np.array([-1.0, -1.0, 0.1], np.float32)
    weight = np.array([0.5, 0.3, 0.2], np.float32)
    batch = TrainingGroup(
        np.array([4, 5], np.int32), (np.array([5, 6, 1], np.int32),), np.zeros(3, np.float32), weight, returns=returns,
        values=before,
    )  # fmt: skip
    metrics = [
        backend.open(llama).step([batch], StepParams(learning_rate=0.0, value_clip=value_clip)).loss for value_clip in (None, 0.2)
    ]
    # .1 / 2 * sum: without a clip .5 * 1 + .3 * 4 + .2 * 1; with it the first one is (-.8 - 1)^2
    assert metrics[0] == pytest.approx(0.05 * 1.9, rel=1e-4)
    assert metrics[1] == pytest.approx(0.05 * (0.5 * 3.24 + 1.2 + 0.2), rel=1e-4)
    policy = backend.open(llama)
    policy.step([batch], StepParams(learning_rate=0.0, value_clip=0.2, max_gradient_norm=1e9))
    # the first token pulls no more: d/db is .1 * (.3 * 2 - .2 * 1)
    assert policy.state()[1]["exp_avg.critic.bias"].item() / (1 - MOMENTUM) == pytest.approx(0.04, rel=1e-3)


def test_backends_stay_together_over_many_steps(backend, llama):
    with BACKENDS[0].at_work() as first:
        expected, policy = first.open(llama), backend.open(llama)
    some = [replace(batch, returns=np.ones(len(batch.advantage), np.float32)) for batch in batches()]
    for _ in range(8):
        params = StepParams(learning_rate=1e-3, max_gradient_norm=0.3)
        theirs, ours = expected.step(some, params), policy.step(some, params)
        assert ours.loss == pytest.approx(theirs.loss, abs=100 * backend.logp)
        assert ours.gradient_norm == pytest.approx(theirs.gradient_norm, rel=100 * backend.gradient)
    moved = 0.0
    for name, weight in expected.state()[0].items():
        moved = max(moved, float(np.abs(weight - backend.open(llama).state()[0][name]).max()))
        np.testing.assert_allclose(policy.state()[0][name], weight, atol=100 * backend.logp, err_msg=name)
    assert moved > 5e-3, "nothing was learned: the test shows nothing"
    for ours, theirs in zip(policy.values(some), expected.values(some), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=100 * backend.logp)


def test_the_first_step_is_as_long_as_the_learning_rate(backend, llama):
    """AdamW without bias correction would go a third of the way, and the wrong one."""
    policy = backend.open(llama)
    before = {name: weight.copy() for name, weight in policy.state()[0].items()}
    slopes = gradient(backend.open(llama), batches())
    policy.step(batches(), StepParams(learning_rate=1e-3))
    for name, weight in policy.state()[0].items():
        steep = np.abs(slopes[name]) > 1e-4
        np.testing.assert_allclose((before[name] - weight)[steep], 1e-3 * np.sign(slopes[name][steep]), rtol=0.02)


@pytest.mark.parametrize("method", ["full", "lora"])
def test_a_step_of_reinforcement_learning_is_not_lost_in_rounding(backend, llama, method):
    policy = backend.open(llama, method=method, precision="bfloat16")
    before = {name: weight.copy() for name, weight in policy.state()[0].items()}
    policy.step(batches(), StepParams(learning_rate=1e-6))
    moved = [np.mean(weight != before[name]) for name, weight in policy.state()[0].items() if "lora_A" not in name]
    assert np.mean(moved) > 0.9


def test_the_padding_token_is_trained_like_any_other(backend, folders):
    batch = TrainingGroup(
        np.array([0, 5, 0], np.int32), (np.array([7], np.int32),), np.ones(1, np.float32), np.ones(1, np.float32)
    )
    gradients = gradient(backend.open(folders["untied"]), [batch])
    assert np.abs(gradients["model.embed_tokens.weight"][PAD]).max() > 0


def test_the_value_heads_gradient_is_that_of_the_weighted_squared_error(backend, llama):
    weight, returns = np.array([0.5, 0.3, 0.2], np.float32), np.array([1.0, 2.0, 4.0], np.float32)
    batch = TrainingGroup(
        np.array([4, 5], np.int32), (np.array([5, 6, 1], np.int32),), np.zeros(3, np.float32), weight, returns=returns
    )
    gradients = gradient(backend.open(llama), [batch])
    # d/db of .1 / 2 * sum(w (v - R)^2) at v = 0 is -.1 * sum(w R) = -.1 * (.5 + .6 + .8)
    assert gradients["critic.bias"].item() == pytest.approx(-0.19, rel=1e-3)


def test_the_value_head_reads_the_model_and_never_moves_it(backend, llama):
    """A completion's author influences its return, so the critic's gradient must not reach the model."""
    policy = backend.open(llama)
    before = {name: weight.copy() for name, weight in policy.state()[0].items()}
    zeros, weight, returns = np.zeros(3, np.float32), np.full(3, 1 / 3, np.float32), np.ones(3, np.float32)
    batch = TrainingGroup(np.array([4, 5], np.int32), (np.array([5, 6, 1], np.int32),), zeros, weight, returns=returns)
    for _ in range(3):
        policy.step([batch], StepParams(learning_rate=1e-2))
    assert policy.values([batch])[0].min() > 0
    for name, weight in policy.state()[0].items():
        np.testing.assert_array_equal(weight, before[name], err_msg=name)


def test_a_stop_in_the_middle_of_an_update_changes_nothing(backend, llama):
    policy = backend.open(llama, parts=1 << 20)
    before = {name: weight.copy() for name, weight in policy.state()[0].items()}
    calls = iter([None, None])

    def stop_at_the_third() -> None:
        if next(calls, "stop") == "stop":
            raise Stopped

    with pytest.raises(Stopped):
        policy.step(batches(), StepParams(learning_rate=1e-2, pause_point=stop_at_the_third))
    assert all(np.array_equal(before[name], weight) for name, weight in policy.state()[0].items())
    assert policy.steps == 0


def test_a_gradient_that_is_no_number_changes_nothing_and_is_said(backend, llama):
    policy = backend.open(llama)
    before = {name: weight.copy() for name, weight in policy.state()[0].items()}
    batch = batches()[0]
    metrics = policy.step([replace(batch, advantage=batch.advantage * np.float32(np.nan))], StepParams(learning_rate=1e-2))
    assert (metrics.applied, metrics.loss, policy.steps) == (False, 0.0, 0)
    assert all(np.array_equal(before[name], weight) for name, weight in policy.state()[0].items())


def test_a_gradient_whose_length_finds_no_memory_says_so(llama, monkeypatch):
    mlx_policy = pytest.importorskip("waggle.models.mlx.policy")

    class TooLarge:
        def __mul__(self, other: object) -> object:
            raise RuntimeError("[malloc] Unable to allocate 4096 bytes.")

    policy = mlx_policy.MlxPolicy(llama)
    monkeypatch.setattr(policy, "_gradient", lambda *_: ({"model.norm.weight": TooLarge()}, 0.0, 0.0))
    with pytest.raises(MemoryShort):
        policy.step(batches(), StepParams(learning_rate=1e-4))


def test_what_metal_says_late_for_want_of_memory_is_heard_too(monkeypatch):
    memory = pytest.importorskip("waggle.models.mlx.memory")

    def late() -> None:
        raise RuntimeError("[METAL] Command buffer execution failed: Insufficient Memory")

    monkeypatch.setattr("mlx.core.synchronize", late)
    with pytest.raises(MemoryShort), memory.memory_errors():
        pass


def test_a_model_that_finds_no_memory_to_be_loaded_is_not_called_damaged(llama, monkeypatch):
    mlx_policy = pytest.importorskip("waggle.models.mlx.policy")

    def full(*_: object) -> None:
        raise RuntimeError("[malloc] Unable to allocate 4096 bytes.")

    monkeypatch.setattr("mlx.core.eval", full)
    with pytest.raises(MemoryShort):
        mlx_policy.MlxPolicy(llama)


def test_a_step_that_teaches_the_value_head_nothing_leaves_it_and_its_moments_alone(backend, llama):
    policy = backend.open(llama)
    policy.step(
        [replace(batch, returns=np.ones(len(batch.advantage), np.float32)) for batch in batches()], StepParams(learning_rate=1e-2)
    )
    before = {name: array.copy() for name, array in policy.state()[1].items() if "critic" in name}
    policy.step(batches(), StepParams(learning_rate=1e-2))
    after = policy.state()[1]
    assert before["critic.steps"] == 1
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array, err_msg=name)
