"""The contract of saved states: bit for bit in the same backend, and the same policy in the other."""

from dataclasses import replace

import numpy as np
import pytest

from models.contract.backends import BACKENDS
from models.contract.groups import batches, prompts, sample
from waggle.core.errors import ModelError
from waggle.models.shared import lora
from waggle.models.storage.checkpoint import CheckpointState, load_newest, save
from waggle.rl.batch import StepParams

PARAMS = StepParams(learning_rate=1e-3)


def returning(some):
    return [replace(batch, returns=np.ones(len(batch.advantage), np.float32)) for batch in some]


@pytest.mark.parametrize("method", ["full", "lora"])
@pytest.mark.parametrize("critic", [False, True])
def test_a_policy_resumes_from_what_any_backend_saved(backend, llama, tmp_path, method, critic):
    for writer in (writer for writer in BACKENDS if writer == backend or (writer.exact and not writer.missing)):
        with writer.at_work():
            first = writer.open(llama, method=method)
            first.step(batches(), PARAMS)
            some = returning(batches()) if critic else batches()  # the value head is a step younger than the model
            first.step(some, PARAMS)
            state = CheckpointState(round=1, step=first.steps, epoch=1, charter="c", base="b", method=method)
            save(tmp_path / writer.name, first, state)
        with backend.at_work():
            second = backend.open(llama, method=method)
            assert load_newest(tmp_path / writer.name, second, "b") == (state, [])
            assert second.steps == 2
            exact = writer.name == backend.name and backend.exact
            compare(second.state(), first.state(), 0.0)
            for each in (first, second):
                each.step(some, PARAMS)
            compare(second.state(), first.state(), 0.0 if exact else 10 * backend.logp)
            for rows, others in zip(sample(second, prompts(2)), sample(first, prompts(2)), strict=True):
                same = [np.array_equal(completion.tokens, other.tokens) for completion, other in zip(rows, others, strict=True)]
                assert all(same) if backend.exact else sum(same) >= 10


def compare(ours, theirs, tolerance: float) -> None:
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.keys() == other.keys()
        for name, array in mine.items():
            np.testing.assert_allclose(array, other[name], atol=tolerance, rtol=0, err_msg=name)


def test_a_state_without_a_value_head_takes_the_value_head_away(backend, llama):
    policy = backend.open(llama)
    weights, rest = ({name: array.copy() for name, array in state.items()} for state in policy.state())
    policy.step(returning(batches()), PARAMS)
    assert policy.values(batches())[0].any()
    policy.restore(weights, rest, 0)
    assert not policy.values(batches())[0].any()
    assert policy.state()[1].keys() == rest.keys()


def test_the_state_of_another_model_is_refused(backend, folders):
    weights, moments = backend.open(folders["wide heads"]).state()
    with pytest.raises(ModelError, match="belongs to another model"):
        backend.open(folders["llama"]).restore(dict(weights), dict(moments), 1)


def test_adapters_begin_as_nothing_and_can_be_added_to_the_weights_for_good(backend, llama):
    plain, adapted = backend.open(llama), backend.open(llama, method="lora")
    for logprobs, other in zip(plain.logprobs(batches(), 1.0), adapted.logprobs(batches(), 1.0), strict=True):
        np.testing.assert_allclose(logprobs, other, atol=1e-6)
    for _ in range(3):
        adapted.step(batches(), StepParams(learning_rate=1e-2))
    learned = adapted.logprobs(batches(), 1.0)
    assert (
        max(np.abs(logprobs - other).max() for logprobs, other in zip(plain.logprobs(batches(), 1.0), learned, strict=True))
        > 0.05
    )
    weights, moments = plain.state()
    learned_ones = adapted.state()[0]
    whole = {name: lora.fuse(name.removesuffix(".weight"), weight, learned_ones) for name, weight in weights.items()}
    plain.restore(whole, moments, 0)
    for logprobs, other in zip(plain.logprobs(batches(), 1.0), learned, strict=True):
        np.testing.assert_allclose(logprobs, other, atol=10 * backend.logp)


def test_what_is_taken_over_is_there_once_only(backend, llama):
    """Or a model that fits while it learns would not fit when it resumes."""
    policy = backend.open(llama)
    policy.step(returning(batches()), StepParams(learning_rate=1e-3))
    weights, moments = policy.state()
    backend.open(llama).restore(weights, moments, 1)
    assert (weights, set(moments)) == ({}, {"steps", "critic.steps"})
