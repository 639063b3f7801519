"""MLX samples the tokens of the numpy reference, from vocabularies of any size."""

import numpy as np
import pytest

from waggle.rl.token_sampling import sample_tokens as oracle

mx = pytest.importorskip("mlx.core")


@pytest.mark.parametrize("vocabulary", [97, 128, 4096, 5000, 32_064])
@pytest.mark.parametrize("top_p", [1.0, 0.9])
def test_mlx_picks_what_the_oracle_picks(vocabulary, top_p):
    from waggle.models.mlx.token_sampling import sample_tokens

    noise = np.random.default_rng(1)
    logits, uniforms = 3 * noise.standard_normal((64, vocabulary), dtype=np.float32), noise.random(64, dtype=np.float32)
    expected, likely = oracle(logits, uniforms, top_p)
    tokens, token_likely = sample_tokens(mx.array(logits), uniforms, top_p)
    np.testing.assert_array_equal(tokens, expected)
    np.testing.assert_allclose(token_likely, likely, atol=1e-5)


@pytest.mark.parametrize("uniform", [0.0, 1 - 2**-24])
def test_the_ends_of_the_noise_pick_tokens_that_exist(uniform):
    from waggle.models.mlx.token_sampling import sample_tokens

    logits = np.random.default_rng(2).standard_normal((2, 4097), dtype=np.float32)
    tokens, likely = sample_tokens(mx.array(logits), np.full(2, uniform, np.float32), 1.0)
    assert ((tokens >= 0) & (tokens < 4097)).all()
    assert np.isfinite(likely).all()


def test_the_log_probs_of_a_large_vocabulary_are_exact():
    from waggle.models.mlx.fused_head import logprobs

    noise = np.random.default_rng(3)
    normed, head = (noise.standard_normal(shape, dtype=np.float32) for shape in ((8, 4), (151_936, 4)))
    targets = noise.integers(0, 151_936, 8)
    scores_of_mlx = np.array(logprobs(mx.array(normed), mx.array(head), mx.array(targets.astype(np.int32)), 1.0, frozen=True))
    scores = normed.astype(np.float64) @ head.T
    np.testing.assert_allclose(scores_of_mlx, scores[np.arange(8), targets] - np.log(np.exp(scores).sum(-1)), atol=2e-5)
