"""The self-check of a model of mlx-lm: in which ways it computes the same log-probs as row by row, without a cache.

See `models/generic/self_check.py`. Sliding windows are narrowed for it, so that its short texts are longer.
"""

from collections.abc import Callable
from dataclasses import dataclass

import mlx.core as mx
import numpy as np
from numpy.typing import NDArray

from waggle.core.errors import ModelError
from waggle.models.mlx.fused_head import likely
from waggle.models.mlx.model import Weights
from waggle.models.mlx_generic.decoding import CACHINGS, Caching, MlxLmDecodingBatch
from waggle.models.mlx_generic.layout import LAYOUTS, Layout, hidden_states, targets_of
from waggle.models.mlx_generic.model import MlxLmModel
from waggle.models.shared.mlx_lm.model import REFUSALS
from waggle.models.shared.model_config import ANOTHER
from waggle.rl.batch import Floats, Ids, SamplingParams, TokenizedGroup

# Of a log-prob. Rounding to bfloat16 alone moves it by some hundredths, and Metal adds in no fixed order.
EXACT, ON_METAL, ROUNDED = 1e-4, 5e-3, 0.1
PROMPTS = (20, 13)  # tokens of each
COMPLETIONS = ((5, 7, 3), (1, 4, 2))
WINDOW = 6  # tokens, of a model with sliding windows


@dataclass(frozen=True)
class Ways:
    """How a model computes groups, and how it decodes."""

    layout: Layout
    caching: Caching


def fastest_ways(model: MlxLmModel, weights: Weights) -> Ways:
    """The fastest ways that give right log-probs. Raises ModelError for a model that does not write from left to right."""
    noise = np.random.default_rng(0)
    texts = [
        TokenizedGroup(_tokens(noise, model, length), tuple(_tokens(noise, model, count) for count in counts))
        for length, counts in zip(PROMPTS, COMPLETIONS, strict=True)
    ]
    tolerance = ROUNDED if model.precision != mx.float32 else ON_METAL if mx.default_device() == mx.gpu else EXACT
    with model.window(WINDOW):
        expected = [_logprobs(model, weights, text, "row") for text in texts]
        _require_causal(model, weights, texts[0], expected[0], tolerance)

        def agrees(compute: Callable[[], list[Floats]]) -> bool:
            try:
                computed = compute()
            except (*REFUSALS, RuntimeError) as error:  # the module does not take these arguments
                if "alloc" in str(error):
                    raise
                return False
            return max(float(np.abs(a - b).max()) for a, b in zip(computed, expected, strict=True)) <= tolerance

        def learns(layout: Layout) -> bool:
            return agrees(lambda: [_logprobs(model, weights, text, layout) for text in texts])

        def decodes(caching: Caching) -> bool:
            return agrees(lambda: _decoded(model, weights, texts, caching))

        return Ways(
            next(layout for layout in LAYOUTS if layout == LAYOUTS[-1] or learns(layout)),
            next(caching for caching in CACHINGS if caching == CACHINGS[-1] or decodes(caching)),
        )


def _tokens(noise: np.random.Generator, model: MlxLmModel, count: int) -> Ids:
    return noise.integers(0, model.configuration.vocab_size, count).astype(np.int32)


def _logprobs(model: MlxLmModel, weights: Weights, text: TokenizedGroup, layout: Layout) -> Floats:
    """The log-probs (N,) of the completion tokens."""
    logits = model.logits(weights, hidden_states(model, weights, text, layout))
    return np.array(likely(logits, targets_of([text]).targets), np.float32)


def _decoded(model: MlxLmModel, weights: Weights, texts: list[TokenizedGroup], caching: Caching) -> list[Floats]:
    """The same log-probs from decoding these completions token by token."""
    rows = [tokens for text in texts for tokens in text.completions]
    longest, group_size = max(map(len, rows)), len(texts[0].completions)
    forced: NDArray[np.int64] = np.zeros((len(rows), longest), np.int64)
    for row, tokens in zip(forced, rows, strict=True):
        row[: len(tokens)] = tokens
    params = SamplingParams(max_new=longest, stops=(-1,))
    batch = MlxLmDecodingBatch(model, weights, caching, [text.prompt for text in texts], group_size, params)
    columns = []
    for column in range(longest):
        scores = mx.array(batch.logits())
        columns.append(np.array(likely(scores, mx.array(forced[:, column].astype(np.int32)))))
        if column + 1 < longest:
            batch.force(forced[:, column].copy())
            batch.advance(column)
    values = np.stack(columns, 1)  # (rows, longest)
    flat = [values[i, : len(tokens)] for i, tokens in enumerate(rows)]
    return [np.concatenate(flat[i * group_size : (i + 1) * group_size]) for i in range(len(texts))]


def _require_causal(model: MlxLmModel, weights: Weights, text: TokenizedGroup, expected: Floats, tolerance: float) -> None:
    """Raise ModelError if a later token changes what a model says before it, or if it says no numbers."""
    first = text.completions[0]
    short = _logprobs(model, weights, TokenizedGroup(text.prompt, (first[:-2],)), "row")
    if not np.isfinite(expected).all():
        raise ModelError("The model's answers are no numbers.", "Copy or download it again, or choose another model.")
    if float(np.abs(short - expected[: len(short)]).max()) > tolerance:
        raise ModelError("The model does not write from left to right.", ANOTHER)
