"""Picks a token by inverse transform sampling: inverts the cumulative distribution at a given uniform number. In numpy.

What every backend must do, to the letter.

The temperature comes first and the cut to the likeliest tokens second, as everywhere since Hugging Face's warpers; log-probs are
those of the whole distribution at that temperature, for that is what is trained.
"""

import numpy as np
from numpy.typing import NDArray

from waggle.rl.batch import Floats

BLOCK = 128  # tokens whose chances are summed together first
BLOCKS_FROM = 4096  # tokens of a vocabulary from which on that is done


def pick(logits: Floats, uniforms: Floats, top_p: float = 1.0) -> tuple[NDArray[np.int64], Floats]:
    """(rows, V) at the temperature wanted and (rows,) in [0, 1) -> tokens (rows,) and their log-probs."""
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
    """True for the fewest tokens, likeliest first, that together have at least `top_p`; one always (arXiv 1904.09751)."""
    order = np.argsort(-chances, -1, kind="stable")
    sorted_chances = np.take_along_axis(chances, order, -1).astype(np.float64)
    before = np.cumsum(sorted_chances, -1) - sorted_chances
    in_nucleus = np.zeros(chances.shape, np.bool_)
    np.put_along_axis(in_nucleus, order, before < top_p * sorted_chances.sum(-1, keepdims=True), -1)
    return in_nucleus
