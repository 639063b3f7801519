"""Picks tokens by inverse transform sampling: inverts the cumulative distribution at a given uniform number. In numpy.

The reference that every backend must reproduce exactly. The temperature is applied first and top-p second, as in Hugging Face's
logits warpers. Log-probs are those of the whole distribution at that temperature, because that is what is trained.
"""

import numpy as np
from numpy.typing import NDArray

from waggle.rl.batch import Floats

BLOCK = 128  # tokens whose probabilities are summed in one partial sum
BLOCKS_FROM = 4096  # size of a vocabulary from which partial sums are used


def sample_tokens(logits: Floats, uniforms: Floats, top_p: float = 1.0) -> tuple[NDArray[np.int64], Floats]:
    """Logits (rows, V), divided by the temperature, and numbers (rows,) in [0, 1) -> tokens (rows,), log-probs (rows,)."""
    scores = logits - logits.max(-1, keepdims=True)
    chances = np.exp(scores)
    if top_p < 1.0:
        chances = chances * nucleus(chances, top_p)
    totals = np.cumsum(chances, -1, dtype=np.float64)
    targets = uniforms.astype(np.float64) * totals[:, -1]
    tokens = np.minimum((totals <= targets[:, None]).sum(-1), logits.shape[1] - 1)
    likely = np.take_along_axis(scores, tokens[:, None], -1)[:, 0] - np.log(np.exp(scores).sum(-1, dtype=np.float64))
    return tokens, likely.astype(np.float32)


def nucleus(chances: Floats, top_p: float) -> NDArray[np.bool_]:
    """(rows, V): True for the fewest tokens, likeliest first, that together have at least `top_p` (arXiv 1904.09751)."""
    order = np.argsort(-chances, -1, kind="stable")
    sorted_chances = np.take_along_axis(chances, order, -1).astype(np.float64)
    before = np.cumsum(sorted_chances, -1) - sorted_chances
    in_nucleus = np.zeros(chances.shape, np.bool_)
    np.put_along_axis(in_nucleus, order, before < top_p * sorted_chances.sum(-1, keepdims=True), -1)
    return in_nucleus
