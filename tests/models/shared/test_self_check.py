"""When two ways of computing a model count as equal, by numbers of the size that real and tiny models gave."""

import numpy as np
import pytest

from waggle.core.errors import ModelError
from waggle.models.shared.self_check import (
    EXACT,
    fastest,
    forced_tokens,
    is_equal,
    require_causal,
    short_texts,
    shortened,
    spread_of,
)


def logprobs(spread: float, count: int = 30) -> np.ndarray:
    values = np.random.default_rng(0).normal(-5.0, 1.0, count)
    return ((values - values.mean()) / values.std(ddof=1) * spread - 5.0).astype(np.float32)


@pytest.mark.parametrize(
    ("spread", "error", "equal"), [(4.0, 0.15, True), (4.0, 0.25, False), (0.4, 0.015, True), (0.4, 0.025, False)]
)
def test_in_a_narrow_precision_an_error_is_measured_by_the_spread(spread, error, equal):
    expected = logprobs(spread)
    noise = np.where(np.arange(len(expected)) % 2, error, -error).astype(np.float32)
    assert is_equal(expected + noise, expected, spread_of(expected), None) is equal


def test_in_float32_the_largest_error_counts():
    expected = logprobs(4.0)
    for error, equal in ((EXACT / 2, True), (EXACT * 2, False)):
        ours = expected.copy()
        ours[-1] += error
        assert is_equal(ours, expected, spread_of(expected), EXACT) is equal


@pytest.mark.parametrize("exact", [EXACT, None])
@pytest.mark.parametrize("place", [0, -1])
def test_what_is_no_number_is_never_equal(exact, place):
    expected = logprobs(4.0)
    ours = expected.copy()
    ours[place] = np.nan
    assert not is_equal(ours, expected, spread_of(expected), exact)
    with pytest.raises(ModelError, match="no numbers"):
        require_causal(ours, ours[:3], exact)


@pytest.mark.parametrize("exact", [EXACT, None])
def test_a_model_that_reads_later_tokens_is_refused(exact):
    whole = logprobs(4.0)
    require_causal(whole, whole[:3], exact)
    with pytest.raises(ModelError, match="left to right"):
        require_causal(whole, whole[:3] + 0.5, exact)


def test_the_first_right_way_is_taken_and_the_last_is_not_tried():
    tried: list[str] = []

    def is_right(way: str) -> bool:
        tried.append(way)
        return way == "second"

    assert fastest(("first", "second", "last"), is_right) == "second"
    assert fastest(("first", "last"), is_right) == "last"
    assert tried == ["first", "second", "first"]


def test_the_texts_have_the_lengths_that_were_named():
    texts = short_texts(50, ((5, 7, 3), (1, 4, 2)))
    assert [(len(text.prompt), [len(tokens) for tokens in text.completions]) for text in texts] == [
        (20, [5, 7, 3]),
        (13, [1, 4, 2]),
    ]
    assert all(tokens.min() >= 0 and tokens.max() < 50 for text in texts for tokens in (text.prompt, *text.completions))
    assert shortened(texts[0]).completions[0].tolist() == texts[0].completions[0][:3].tolist()
    tokens, there = forced_tokens(texts)
    assert tokens.shape == there.shape == (6, 7)
    assert tokens[there].tolist() == np.concatenate([ids for text in texts for ids in text.completions]).tolist()
