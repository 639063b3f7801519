"""The least work of each phase of a round, and the measured limits of one core; together, the share of the limit reached.

A roofline: a phase cannot be faster than its operations at full speed, nor than its bytes at full bandwidth.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from waggle.models.memory_fit import BYTES, weights_of
from waggle.models.shared.configuration.model_config import ModelConfig
from waggle.models.torch.linear import ready_weight
from waggle_lab.benchmark import cells
from waggle_lab.benchmark.cells import Cell

TRIES = 7
SIDE = 2048  # of the square matrices
STREAM = 1 << 25  # numbers in each array: 128 MiB, more than any cache holds
ADAMW_BYTES = 32  # for each weight, 8 x 4: read the gradient twice (norm, step); read and write the weight and both moments


@dataclass(frozen=True)
class Limits:
    """What one core can do: `speed` in operations per second in the cell's precision, `bandwidth` in bytes per second."""

    speed: float
    bandwidth: float


@dataclass(frozen=True)
class Need:
    """The operations and bytes that a phase needs at least, however it is implemented."""

    operations: float
    bytes: float

    def seconds(self, limits: Limits) -> float:
        return max(self.operations / limits.speed, self.bytes / limits.bandwidth)


def measure(precision: str) -> Limits:
    """Measure one core, by the best of several tries: matrix products (MKL, oneDNN), the triad a = b + s * c, a dot product."""
    first, second = (torch.ones(SIDE, SIDE, dtype=getattr(torch, precision)) for _ in range(2))
    out = torch.empty_like(first)
    a, b, c = (torch.ones(STREAM) for _ in range(3))
    products: list[Callable[[], object]] = [lambda: torch.mm(first, second, out=out)]
    if ready := ready_weight(second, first.dtype, SIDE):  # in fp32 by oneDNN, which is twice as fast as MKL on some processors
        products.append(lambda: ready(first))
    speed = 2.0 * SIDE**3 / min(map(_fastest, products))
    triad = 3 * 4 * STREAM / _fastest(lambda: torch.add(b, c, alpha=0.5, out=a))
    read = 2 * 4 * STREAM / _fastest(lambda: torch.dot(b, c))
    return Limits(speed, max(triad, read))


def _fastest(work: Callable[[], object]) -> float:
    work()
    best = float("inf")
    for _ in range(TRIES):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return best


def needs(cell: Cell, model: ModelConfig) -> Mapping[str, Need]:
    """The least work of every phase of a round.

    A forward pass takes 2 operations for each weight and token, and 4 * head_dim for each head and pair of query and key
    (2 for q . k and 2 for the weighted sum of values).
    """
    head = model.vocab_size * model.hidden_size
    layers = weights_of(model) - head * (1 if model.tie_word_embeddings else 2)
    size = BYTES[cell.precision]
    lengths = [length for row in cells.lengths(cell) for length in row]
    pairs_decoded = sum(sum(range(cell.prompt + 1, cell.prompt + length)) for length in lengths)  # pairs of query and key
    steps, columns = sum(lengths) - len(lengths), max(lengths) - 1
    per_pair = 4 * model.num_hidden_layers * model.num_attention_heads * model.head_dim  # operations
    cache = 2 * model.num_hidden_layers * model.num_key_value_heads * model.head_dim * size  # bytes of one token
    prompt_tokens = cell.questions * cell.prompt
    needs_by_phase = {
        "prefill": Need(
            2 * prompt_tokens * layers + 2 * cell.questions * head + per_pair * cell.questions * cell.prompt**2 / 2,
            size * (layers + head),
        ),
        "decode": Need(
            2 * steps * (layers + head) + per_pair * pairs_decoded, columns * size * (layers + head) + cache * pairs_decoded
        ),
    }
    if cell.learns:
        needs_by_phase["update"] = _learning(cell, layers, head, per_pair)
        if cell.method == "full":
            needs_by_phase["optimiser"] = Need(0.0, ADAMW_BYTES * weights_of(model))
    return needs_by_phase


def _learning(cell: Cell, layers: int, head: int, per_pair: int) -> Need:
    """The least work of learning: forward, backward to the activations and, unless adapters are trained, to the weights.

    A group's prompt is computed once. A group whose rewards are all equal has no advantage and needs nothing.
    """
    # for each weight and token: 2 forward, 2 backward to the activations, 2 backward to the weight
    per_weight = 4 if cell.method == "lora" else 6
    operations = 0.0
    for row, rewards in zip(cells.lengths(cell), cells.rewards(cell), strict=True):
        if len(set(rewards)) == 1:
            continue
        pairs = cell.prompt**2 / 2 + sum(length * (cell.prompt + length / 2) for length in row)
        operations += per_weight * ((cell.prompt + sum(row)) * layers + sum(row) * head) + 3 * per_pair * pairs
    return Need(operations, 0.0)
