"""Inverse transform sampling in MLX, equal to `rl/token_sampling.py`: first a block of tokens, then a token in it.

The device sums the probabilities of each block. numpy adds these sums in fp64, which Metal lacks.
"""

import mlx.core as mx
import numpy as np
from numpy.typing import NDArray

from waggle.rl import token_sampling as oracle
from waggle.rl.batch import Floats
from waggle.rl.token_sampling import BLOCK


def sample_tokens(logits: mx.array, uniforms: Floats, top_p: float) -> tuple[NDArray[np.int64], Floats]:
    """Logits (rows, V), divided by the temperature, and numbers (rows,) in [0, 1) -> tokens (rows,), log-probs (rows,)."""
    if top_p < 1.0:
        return oracle.sample_tokens(np.array(logits), uniforms, top_p)
    rows, vocabulary = logits.shape
    scores = logits - logits.max(-1, keepdims=True)
    chances = mx.exp(scores)
    blocks = mx.pad(chances, [(0, 0), (0, -vocabulary % BLOCK)]).reshape(rows, -1, BLOCK)
    ends = np.cumsum(np.array(blocks.sum(-1), np.float64), -1)  # (rows, blocks)
    targets = uniforms.astype(np.float64) * ends[:, -1]
    block = _ends_reached(ends, targets)
    here = np.arange(rows)
    before = np.where(block > 0, ends[here, block - 1], 0.0)
    chosen = blocks[mx.arange(rows), mx.array(block.astype(np.int32))]  # (rows, BLOCK)
    inside = np.cumsum(np.array(chosen, np.float64), -1)
    tokens = np.minimum(block * BLOCK + _ends_reached(inside, targets - before), vocabulary - 1)
    chosen_scores = np.array(scores[mx.arange(rows), mx.array(tokens.astype(np.int32))])
    return tokens, (chosen_scores - np.log(ends[:, -1])).astype(np.float32)


def _ends_reached(ends: NDArray[np.float64], targets: NDArray[np.float64]) -> NDArray[np.int64]:
    """How many `ends` each target has reached (rows,), at most all but the last."""
    passed: NDArray[np.int64] = np.minimum((ends <= targets[:, None]).sum(-1), ends.shape[1] - 1)
    return passed
