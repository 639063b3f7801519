"""The self-check of a model of mlx-lm: in which ways it computes the same log-probs as row by row, without a cache.

See `models/generic/self_check.py`. Sliding windows are narrowed for it, so that its short texts are longer.
"""

from collections.abc import Callable
from dataclasses import dataclass

import mlx.core as mx
import numpy as np

from waggle.models.mlx.fused_head import likely
from waggle.models.mlx.model import Weights
from waggle.models.mlx_generic.decoding import CACHINGS, Caching, MlxLmDecodingBatch
from waggle.models.mlx_generic.layout import LAYOUTS, Layout, hidden_states, targets_of
from waggle.models.mlx_generic.model import MlxLmModel
from waggle.models.shared.mlx_lm.model import REFUSALS
from waggle.models.shared.self_check import (
    EXACT,
    WINDOW,
    fastest,
    forced_tokens,
    is_equal,
    require_causal,
    short_texts,
    shortened,
    spread_of,
)
from waggle.rl.batch import Floats, SamplingParams, TokenizedGroup

ON_METAL = 5e-3  # in float32: the largest error of a log-prob. Metal adds in no fixed order
COMPLETIONS = ((5, 7, 3), (1, 4, 2))  # tokens of those of each prompt


@dataclass(frozen=True)
class Ways:
    """How a model computes groups, and how it decodes."""

    layout: Layout
    caching: Caching


def fastest_ways(model: MlxLmModel, weights: Weights) -> Ways:
    """The fastest ways that give right log-probs. Raises ModelError for a model that does not write from left to right."""
    texts = short_texts(model.configuration.vocab_size, COMPLETIONS)
    exact = None if model.precision != mx.float32 else ON_METAL if mx.default_device() == mx.gpu else EXACT
    with model.window(WINDOW):
        by_text = [_logprobs(model, weights, text, "row") for text in texts]
        require_causal(by_text[0], _logprobs(model, weights, shortened(texts[0]), "row"), exact)
        expected = np.concatenate(by_text)

        def agrees(compute: Callable[[], Floats]) -> bool:
            try:
                return is_equal(compute(), expected, spread_of(expected), exact)
            except (*REFUSALS, RuntimeError) as error:  # the module does not take these arguments
                if "alloc" in str(error):
                    raise
                return False

        def learns(layout: Layout) -> bool:
            return agrees(lambda: np.concatenate([_logprobs(model, weights, text, layout) for text in texts]))

        def decodes(caching: Caching) -> bool:
            return agrees(lambda: _decoded(model, weights, texts, caching))

        return Ways(fastest(LAYOUTS, learns), fastest(CACHINGS, decodes))


def _logprobs(model: MlxLmModel, weights: Weights, text: TokenizedGroup, layout: Layout) -> Floats:
    """The log-probs (N,) of the completion tokens."""
    logits = model.logits(weights, hidden_states(model, weights, text, layout))
    return np.array(likely(logits, targets_of([text]).targets), np.float32)


def _decoded(model: MlxLmModel, weights: Weights, texts: list[TokenizedGroup], caching: Caching) -> Floats:
    """The same log-probs from decoding these completions token by token."""
    forced, there = forced_tokens(texts)
    longest = forced.shape[1]
    params = SamplingParams(max_new=longest, stops=(-1,))
    prompts = [text.prompt for text in texts]
    batch = MlxLmDecodingBatch(model, weights, caching, prompts, len(texts[0].completions), params)
    columns = []
    for column in range(longest):
        columns.append(np.array(likely(mx.array(batch.logits()), mx.array(forced[:, column].astype(np.int32)))))
        if column + 1 < longest:
            batch.force(forced[:, column].copy())
            batch.advance(column)
    values: Floats = np.stack(columns, 1)[there]  # (rows, longest) -> (N,)
    return values
