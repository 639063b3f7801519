"""The self-check of a model of transformers: in which ways it computes the same log-probs as row by row, without a cache.

Models differ in what they make of masks, positions, padding and caches, and few of them say so. So each way is tried on a short
text when the model is opened, the fastest first. Sliding windows are narrowed for it, so that the text is longer.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from waggle.core.errors import ModelError
from waggle.models.generic.decoding import CACHINGS, Caching, GenericDecodingBatch
from waggle.models.generic.layout import LAYOUTS, Layout, can_pack, hidden_states, targets_of
from waggle.models.generic.model import GenericModel
from waggle.models.shared.model_config import ANOTHER
from waggle.rl.batch import SamplingParams, TokenizedGroup

EXACT = 1e-4  # in float32: the largest error of a log-prob
# In a narrow precision: the error (root mean square) in relation to the spread of the log-probs. Rounding gave at most .008 in
# tiny models, and .03 in a real one of 30 layers with layers in 4 bits; the least wrong way of 52 kinds gave .06.
ROUNDED = 0.05
PROMPTS, COMPLETIONS = (20, 13), (5, 7, 3)  # tokens of each
WINDOW = 6  # tokens, of a model with sliding windows
REFUSALS = (TypeError, ValueError, RuntimeError, AttributeError, KeyError, IndexError, NotImplementedError)


@dataclass(frozen=True)
class Ways:
    """How a model computes groups, and how it decodes."""

    layout: Layout
    caching: Caching


@torch.no_grad()
def fastest_ways(model: GenericModel) -> Ways:
    """The fastest ways that give right log-probs. Raises ModelError for a model that does not write from left to right."""
    noise = np.random.default_rng(0)
    texts = [
        TokenizedGroup(_tokens(noise, model, length), tuple(_tokens(noise, model, count) for count in COMPLETIONS))
        for length in PROMPTS
    ]
    with model.window(WINDOW):
        expected = [_logprobs(model, text, "row") for text in texts]
        _require_causal(model, texts[0], expected[0])

        def learns(layout: Layout) -> bool:
            return can_pack(model, layout) and _agrees(
                model, lambda: [_logprobs(model, text, layout) for text in texts], expected
            )

        def decodes(caching: Caching) -> bool:
            return (model.has_cache or caching == "again") and _agrees(model, lambda: _decoded(model, texts, caching), expected)

        return Ways(
            next(layout for layout in LAYOUTS if layout == LAYOUTS[-1] or learns(layout)),
            next(caching for caching in CACHINGS if caching == CACHINGS[-1] or decodes(caching)),
        )


def _tokens(noise: np.random.Generator, model: GenericModel, count: int) -> "np.ndarray[tuple[int], np.dtype[np.int32]]":
    return noise.integers(0, model.configuration.vocab_size, count).astype(np.int32)


def _logprobs(model: GenericModel, text: TokenizedGroup, layout: Layout) -> torch.Tensor:
    """The log-probs (N,) of the completion tokens."""
    scores = torch.log_softmax(model.logits(hidden_states(model, text, layout)), -1)
    return scores.gather(-1, targets_of([text], model.device).targets[:, None])[:, 0]


def _decoded(model: GenericModel, texts: list[TokenizedGroup], caching: Caching) -> list[torch.Tensor]:
    """The same log-probs from decoding these completions token by token."""
    longest = max(COMPLETIONS)
    rows = [tokens for text in texts for tokens in text.completions]
    forced = torch.zeros((len(rows), longest), dtype=torch.int64, device=model.device)
    for i, tokens in enumerate(rows):
        forced[i, : len(tokens)] = torch.from_numpy(tokens)
    batch = GenericDecodingBatch(
        model, caching, [text.prompt for text in texts], len(COMPLETIONS), SamplingParams(max_new=longest, stops=(-1,))
    )
    columns = []
    for column in range(longest):
        columns.append(torch.log_softmax(batch.logits(), -1).gather(-1, forced[:, column, None])[:, 0])
        if column + 1 < longest:
            batch.force(forced[:, column])
            batch.advance(column)
    likely = torch.stack(columns, 1)  # (rows, longest)
    flat = [likely[i, : len(tokens)] for i, tokens in enumerate(rows)]
    count = len(COMPLETIONS)
    return [torch.cat(flat[i * count : (i + 1) * count]) for i in range(len(texts))]


def _agrees(model: GenericModel, compute: Callable[[], list[torch.Tensor]], expected: list[torch.Tensor]) -> bool:
    try:
        computed = compute()
    except torch.OutOfMemoryError:
        raise
    except REFUSALS:  # the model does not take these arguments
        return False
    whole = torch.cat(expected)
    return _is_equal(torch.cat(computed), whole, model.precision, float(whole.std()))


def _is_equal(ours: torch.Tensor, theirs: torch.Tensor, precision: torch.dtype, spread: float) -> bool:
    """Whether log-probs (N,) are the same but for rounding; `spread` is their standard deviation. False for NaN."""
    errors = ours - theirs
    if precision == torch.float32:
        return float(errors.abs().max()) <= EXACT
    return float(errors.square().mean().sqrt()) <= ROUNDED * spread


def _require_causal(model: GenericModel, text: TokenizedGroup, expected: torch.Tensor) -> None:
    """Raise ModelError if a later token changes what a model says before it, or if it says no numbers."""
    first = text.completions[0]
    short = _logprobs(model, TokenizedGroup(text.prompt, (first[:-2],)), "row")
    if not torch.isfinite(expected).all():
        raise ModelError("The model's answers are no numbers.", "Copy or download it again, or choose another model.")
    if not _is_equal(short, expected[: len(short)], model.precision, float(expected.std())):
        raise ModelError("The model does not write from left to right.", ANOTHER)
