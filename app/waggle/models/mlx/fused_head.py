"""The fused head in MLX: log-probs a few rows at a time, forward and backward, without an (N, V) array."""

from collections.abc import Iterator
from typing import Any

import mlx.core as mx

from waggle.rl.token_sampling import BLOCK

HEAD_ELEMENTS = 1 << 24  # logits in memory at a time: 64 MiB in fp32


def logits(normed: mx.array, head: mx.array, temperature: float) -> mx.array:
    """Normed hidden states (N, D) -> logits (N, V) in fp32, divided by the temperature."""
    cooled = normed if temperature == 1.0 else normed / temperature  # (N, D) is smaller than (N, V)
    return (cooled @ head.T).astype(mx.float32)


def logprobs(normed: mx.array, head: mx.array, targets: mx.array, temperature: float, *, frozen: bool) -> mx.array:
    """Log-probs (N,) of tokens from the normed states that predict them. A `frozen` head (V, D) gets no gradient."""
    parts = list(parts_of(len(targets), len(head)))

    def forward(normed: mx.array, head: mx.array) -> mx.array:
        chunks: list[mx.array] = []
        for rows in parts:  # in sequence: or MLX would hold all logits at once
            (some,) = mx.depends([normed[rows]], chunks[-1:])
            rows_logits = logits(some, head, temperature)
            chunks.append(likely(rows_logits, targets[rows]))
        return mx.concatenate(chunks)

    def pulls(normed: mx.array, head: mx.array, pull: mx.array) -> tuple[mx.array, mx.array | None]:
        """The gradients of `normed` and `head`, from the gradient `pull` (N,) of the log-probs."""
        downs: list[mx.array] = []
        weight = None if frozen else mx.zeros(head.shape, mx.float32)
        for rows in parts:
            (some,) = mx.depends([normed[rows]], downs[-1:] if weight is None else [weight])
            down = _down(logits(some, head, temperature), targets[rows], pull[rows] / temperature).astype(normed.dtype)
            downs.append(down @ head)
            if weight is not None:
                weight = weight + (down.T @ some).astype(mx.float32)
        return mx.concatenate(downs), None if weight is None else weight.astype(head.dtype)

    if frozen:
        fixed: Any = mx.custom_function(lambda normed: forward(normed, head))
        fixed.vjp(lambda normed, pull, _: pulls(normed, head, pull)[0])
        logp: mx.array = fixed(normed)
        return logp
    learned: Any = mx.custom_function(forward)
    learned.vjp(lambda both, pull, _: pulls(both[0], both[1], pull))
    logp = learned(normed, head)
    return logp


def likely(logits: mx.array, targets: mx.array) -> mx.array:
    """The log-probs (n,) of targets from logits (n, V)."""
    return mx.take_along_axis(logits, targets[:, None], -1)[:, 0] - _total(logits)


def _total(logits: mx.array) -> mx.array:
    """logsumexp (n,), first of blocks: on a CPU, MLX adds 150,000 numbers one by one, with an error of 3e-4."""
    blocks = mx.pad(logits, [(0, 0), (0, -logits.shape[1] % BLOCK)], constant_values=mx.array(-mx.inf))
    return mx.logsumexp(mx.logsumexp(blocks.reshape(len(logits), -1, BLOCK), -1), -1)


def _down(logits: mx.array, targets: mx.array, pull: mx.array) -> mx.array:
    """The gradient of the logits (n, V): pull * (onehot(target) - softmax(logits))."""
    chances = mx.exp(logits - _total(logits)[:, None])
    down = -pull[:, None] * chances
    return down.at[mx.arange(len(targets)), targets].add(pull)


def parts_of(rows: int, vocabulary: int) -> Iterator[slice]:
    """The rows whose logits are in memory together."""
    size = max(1, HEAD_ELEMENTS // vocabulary)
    for first in range(0, rows, size):
        yield slice(first, min(rows, first + size))
