"""Token sampling: the numpy reference against the distribution, and torch against the reference."""

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode

from waggle.models.torch.token_sampling import sample_tokens as torch_pick
from waggle.rl.token_sampling import nucleus, sample_tokens


def noise(rows: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(rows, dtype=np.float32)


def logits(rows: int, vocabulary: int) -> np.ndarray:
    return (3 * np.random.default_rng(1).standard_normal((rows, vocabulary))).astype(np.float32)


class OnTheCard(torch.Tensor):
    """A tensor on a GPU; results of operations are on the GPU, too."""


class IntelCard(TorchFunctionMode):
    """A GPU without fp64, whose tensors cannot be mixed with those of the CPU."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        numbers = [argument for argument in args if isinstance(argument, torch.Tensor)]
        here = [isinstance(number, OnTheCard) for number in numbers]
        if func == torch.Tensor.device.__get__ and here[0]:
            return torch.device("xpu")
        if func in (torch.Tensor.cpu, torch.Tensor.to):
            to_card = func is torch.Tensor.to and args[1] == torch.device("xpu")
            with torch._C.DisableTorchFunctionSubclass():
                return numbers[0].as_subclass(OnTheCard if to_card else torch.Tensor)
        assert len(set(here)) < 2, f"{func} of two devices"
        assert not (func is torch.Tensor.double and here[0]), "Required aspect fp64 is not supported on the device"
        return func(*args, **kwargs or {})


@pytest.mark.parametrize("top_p", [1.0, 0.9])
def test_a_card_that_knows_no_fp64_picks_the_same(top_p):
    scores, uniforms = torch.from_numpy(logits(64, 5000)), torch.from_numpy(noise(64))
    expected, likely = torch_pick(scores, uniforms, top_p)
    with IntelCard():
        tokens, token_likely = torch_pick(scores.as_subclass(OnTheCard), uniforms.as_subclass(OnTheCard), top_p)
    assert isinstance(tokens, OnTheCard)
    np.testing.assert_array_equal(tokens.numpy(), expected.numpy())
    np.testing.assert_allclose(token_likely.numpy(), likely.numpy(), atol=1e-6)


@pytest.mark.parametrize("vocabulary", [97, 4096, 5000, 32_064])
@pytest.mark.parametrize("top_p", [1.0, 0.9, 0.1])
def test_torch_picks_what_the_oracle_picks(vocabulary, top_p):
    scores, uniforms = logits(64, vocabulary), noise(64)
    expected, likely = sample_tokens(scores, uniforms, top_p)
    tokens, token_likely = torch_pick(torch.from_numpy(scores), torch.from_numpy(uniforms), top_p)
    np.testing.assert_array_equal(tokens.numpy(), expected)
    np.testing.assert_allclose(token_likely.numpy(), likely, atol=1e-5)


def test_the_oracle_draws_from_the_distribution():
    count, scores = 20_000, logits(1, 60) / 3
    tokens, _ = sample_tokens(np.repeat(scores, count, 0), noise(count))
    expected = np.exp(scores[0]) / np.exp(scores[0]).sum() * count
    chi_square = ((np.bincount(tokens, minlength=60) - expected) ** 2 / expected).sum()
    assert chi_square < 59 + 4 * (2 * 59) ** 0.5  # four standard deviations above its mean


def test_only_the_likeliest_tokens_are_left_as_in_transformers():
    from transformers import TopPLogitsWarper

    scores = logits(16, 50)
    is_kept = torch.isfinite(TopPLogitsWarper(0.8)(torch.zeros(16, 1, dtype=torch.long), torch.from_numpy(scores)))
    np.testing.assert_array_equal(nucleus(np.exp(scores), 0.8), is_kept.numpy())
    tokens, _ = sample_tokens(np.repeat(scores, 50, 0), noise(800), 0.8)
    assert is_kept.repeat_interleave(50, 0).gather(1, torch.from_numpy(tokens)[:, None]).all()


@pytest.mark.parametrize("uniform", [0.0, 1 - 2**-24])
def test_the_ends_of_the_noise_pick_tokens_that_exist(uniform):
    scores = logits(2, 4097)
    tokens, likely = torch_pick(torch.from_numpy(scores), torch.full((2,), uniform), 1.0)
    assert ((tokens >= 0) & (tokens < 4097)).all()
    assert torch.isfinite(likely).all()
