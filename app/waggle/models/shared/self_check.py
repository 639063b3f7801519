"""What the self-checks of the generic paths share: the short texts that ways are tried on, and when their log-probs are equal."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from waggle.core.errors import ModelError
from waggle.models.shared.configuration.model_config import ANOTHER
from waggle.rl.batch import Floats, Ids, TokenizedGroup

EXACT = 1e-4  # in float32: the largest error of a log-prob
# In a narrow precision: the error (root mean square) in relation to the spread of the log-probs. Rounding gave at most .008 in
# tiny models, and .03 in a real one of 30 layers with layers in 4 bits; the least wrong way of 52 kinds gave .06.
ROUNDED = 0.05
PROMPTS = (20, 13)  # tokens of each
WINDOW = 6  # tokens, of a model with sliding windows

Way = TypeVar("Way")


def fastest(ways: Sequence[Way], is_right: Callable[[Way], bool]) -> Way:
    """The first of these ways that is right. The last one always is, and is not tried."""
    return next(way for way in ways if way == ways[-1] or is_right(way))


def short_texts(vocabulary: int, completions: Sequence[Sequence[int]]) -> list[TokenizedGroup]:
    """A random text for each prompt, with as many tokens in its completions as these lists say."""
    noise = np.random.default_rng(0)

    def tokens(count: int) -> Ids:
        return noise.integers(0, vocabulary, count).astype(np.int32)

    return [
        TokenizedGroup(tokens(length), tuple(tokens(count) for count in counts))
        for length, counts in zip(PROMPTS, completions, strict=True)
    ]


def forced_tokens(texts: Sequence[TokenizedGroup]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(rows, longest) all completions as rows, padded with zeros, and where their tokens are."""
    rows = [completion for text in texts for completion in text.completions]
    tokens: NDArray[np.int64] = np.zeros((len(rows), max(map(len, rows))), np.int64)
    there = np.zeros(tokens.shape, np.bool_)
    for i, completion in enumerate(rows):
        tokens[i, : len(completion)], there[i, : len(completion)] = completion, True
    return tokens, there


def is_equal(ours: Floats, theirs: Floats, spread: float, exact: float | None) -> bool:
    """Whether log-probs (N,) are the same but for rounding. False for NaN.

    `spread` is their standard deviation; `exact` the largest error, or None in a narrow precision.
    """
    errors = ours - theirs
    if exact is not None:
        return bool(np.abs(errors).max() <= exact)
    return bool(np.sqrt(np.square(errors).mean()) <= ROUNDED * spread)


def spread_of(logprobs: Floats) -> float:
    """The standard deviation of log-probs (N,)."""
    return float(logprobs.std(ddof=1))


def shortened(text: TokenizedGroup) -> TokenizedGroup:
    """The first completion of a text without its last tokens, for `require_causal`."""
    return TokenizedGroup(text.prompt, (text.completions[0][:-2],))


def require_causal(whole: Floats, short: Floats, exact: float | None) -> None:
    """Raise ModelError if a later token changes what a model says before it, or if it says no numbers.

    `whole` (N,) are the log-probs of a text, `short` (n,) those of the text `shortened`.
    """
    if not np.isfinite(whole).all():
        raise ModelError("The model's answers are no numbers.", "Copy or download it again, or choose another model.")
    if not is_equal(short, whole[: len(short)], spread_of(whole), exact):
        raise ModelError("The model does not write from left to right.", ANOTHER)
