"""Log-probs a few rows at a time through any head, forward and backward, without an (N, V) array.

See `models/mlx/fused_head.py`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx

from waggle.models.mlx.fused_head import likely, parts_of

Head = Callable[[list[mx.array], mx.array], mx.array]  # (the head's weights, hidden states (n, D)) -> logits (n, V) in fp32


def logprobs(
    head: Head, weights: Sequence[mx.array], normed: mx.array, targets: mx.array, temperature: float, vocabulary: int
) -> mx.array:
    """Log-probs (N,) of tokens from the states (N, D) that predict them. Gradients flow to the states and to `weights`."""
    parts = list(parts_of(len(targets), vocabulary))

    def some_logprobs(weights: list[mx.array], some: mx.array, rows: slice) -> mx.array:
        logits = head(weights, some)
        return likely(logits if temperature == 1.0 else logits / temperature, targets[rows])

    def forward(normed: mx.array, *weights: mx.array) -> mx.array:
        chunks: list[mx.array] = []
        for rows in parts:  # in sequence: or MLX would hold all logits at once
            (some,) = mx.depends([normed[rows]], chunks[-1:])
            chunks.append(some_logprobs(list(weights), some, rows))
        return mx.concatenate(chunks)

    def pulls(primals: Any, pull: mx.array, _: Any) -> tuple[mx.array, ...]:
        """The gradients of `normed` and of the weights, from the gradient `pull` (N,) of the log-probs."""
        normed, *weights = primals if isinstance(primals, list | tuple) else (primals,)
        downs: list[mx.array] = []
        sums = [mx.zeros(weight.shape, mx.float32) for weight in weights]
        for rows in parts:
            (some,) = mx.depends([normed[rows]], [*downs[-1:], *sums])

            def of_rows(some: mx.array, *weights: mx.array, rows: slice = rows) -> mx.array:
                return some_logprobs(list(weights), some, rows)

            _, (down, *more) = mx.vjp(of_rows, [some, *weights], [pull[rows]])
            downs.append(down)
            sums = [total + part.astype(mx.float32) for total, part in zip(sums, more, strict=True)]
        return (mx.concatenate(downs), *(total.astype(weight.dtype) for total, weight in zip(sums, weights, strict=True)))

    function: Any = mx.custom_function(forward)
    function.vjp(pulls if weights else lambda primals, pull, _: pulls(primals, pull, _)[0])
    logp: mx.array = function(normed, *weights)
    return logp
