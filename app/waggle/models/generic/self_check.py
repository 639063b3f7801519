"""The self-check of a model of transformers: in which ways it computes the same log-probs as row by row, without a cache.

Models differ in what they make of masks, positions, padding and caches, and few of them say so. So each way is tried on a short
text when the model is opened, the fastest first. Sliding windows are narrowed for it, so that the text is longer.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from waggle.models.generic.decoding import CACHINGS, Caching, GenericDecodingBatch
from waggle.models.generic.layout import LAYOUTS, Layout, can_pack, hidden_states, targets_of
from waggle.models.generic.model import GenericModel
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

COMPLETIONS = ((5, 7, 3), (5, 7, 3))  # tokens of those of each prompt
REFUSALS = (TypeError, ValueError, RuntimeError, AttributeError, KeyError, IndexError, NotImplementedError)


@dataclass(frozen=True)
class Ways:
    """How a model computes groups, and how it decodes."""

    layout: Layout
    caching: Caching


@torch.no_grad()
def fastest_ways(model: GenericModel) -> Ways:
    """The fastest ways that give right log-probs. Raises ModelError for a model that does not write from left to right."""
    texts = short_texts(model.configuration.vocab_size, COMPLETIONS)
    exact = EXACT if model.precision == torch.float32 else None
    with model.window(WINDOW):
        by_text = [_logprobs(model, text, "row") for text in texts]
        require_causal(by_text[0], _logprobs(model, shortened(texts[0]), "row"), exact)
        expected = np.concatenate(by_text)

        def agrees(compute: Callable[[], Floats]) -> bool:
            try:
                return is_equal(compute(), expected, spread_of(expected), exact)
            except torch.OutOfMemoryError:
                raise
            except REFUSALS:  # the model does not take these arguments
                return False

        def learns(layout: Layout) -> bool:
            return can_pack(model, layout) and agrees(lambda: np.concatenate([_logprobs(model, text, layout) for text in texts]))

        def decodes(caching: Caching) -> bool:
            return (model.has_cache or caching == "again") and agrees(lambda: _decoded(model, texts, caching))

        return Ways(fastest(LAYOUTS, learns), fastest(CACHINGS, decodes))


def _logprobs(model: GenericModel, text: TokenizedGroup, layout: Layout) -> Floats:
    """The log-probs (N,) of the completion tokens."""
    scores = torch.log_softmax(model.logits(hidden_states(model, text, layout)), -1)
    likely: Floats = scores.gather(-1, targets_of([text], model.device).targets[:, None])[:, 0].cpu().numpy()
    return likely


def _decoded(model: GenericModel, texts: list[TokenizedGroup], caching: Caching) -> Floats:
    """The same log-probs from decoding these completions token by token."""
    tokens, there = forced_tokens(texts)
    forced, longest = torch.from_numpy(tokens).to(model.device), tokens.shape[1]
    params = SamplingParams(max_new=longest, stops=(-1,))
    batch = GenericDecodingBatch(model, caching, [text.prompt for text in texts], len(texts[0].completions), params)
    columns = []
    for column in range(longest):
        columns.append(torch.log_softmax(batch.logits(), -1).gather(-1, forced[:, column, None])[:, 0])
        if column + 1 < longest:
            batch.force(forced[:, column])
            batch.advance(column)
    likely: Floats = torch.stack(columns, 1).cpu().numpy()[there]  # (rows, longest) -> (N,)
    return likely
