"""How much of what one core can do a phase reached: operations and bytes that it cannot do without, against measured limits."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from waggle.models.memory_fit import BYTES, weights_of
from waggle.models.shared.model_config import ModelConfig
from waggle.models.torch.linear import ready_weight
from waggle_lab.benchmark import cells
from waggle_lab.benchmark.cells import Cell

TRIES = 7
SIDE = 2048  # of the matrices
STREAM = 1 << 25  # numbers of each array: far more than any cache holds
ADAMW_BYTES = 32  # a weight: gradient twice, for its norm and for the step; weight and both moments read and written


@dataclass(frozen=True)
class Limits:
    """`speed` in operations a second in the cell's precision, `bandwidth` in bytes a second."""

    speed: float
    bandwidth: float


@dataclass(frozen=True)
class Need:
    """What a phase cannot do without, however it is programmed."""

    operations: float
    bytes: float

    def seconds(self, limits: Limits) -> float:
        return max(self.operations / limits.speed, self.bytes / limits.bandwidth)


def measure(precision: str) -> Limits:
    """The best of some tries: a product of two square matrices by either library of torch's, a triad a = b + s * c or a read."""
    left, right = (torch.ones(SIDE, SIDE, dtype=getattr(torch, precision)) for _ in range(2))
    out = torch.empty_like(left)
    a, b, c = (torch.ones(STREAM) for _ in range(3))
    ways: list[Callable[[], object]] = [lambda: torch.mm(left, right, out=out)]
    if ready := ready_weight(right, left.dtype, SIDE):  # in fp32 by oneDNN, which on some processors does twice as many as MKL
        ways.append(lambda: ready(left))
    speed = 2.0 * SIDE**3 / min(map(_fastest, ways))
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
    """Of every phase of a round."""
    head = model.vocab_size * model.hidden_size
    layers = weights_of(model) - head * (1 if model.tie_word_embeddings else 2)
    size = BYTES[cell.precision]
    lengths = [length for row in cells.lengths(cell) for length in row]
    seen = sum(sum(range(cell.prompt + 1, cell.prompt + length)) for length in lengths)  # keys and values read while decoding
    steps, columns = sum(lengths) - len(lengths), max(lengths) - 1
    per_pair = 4 * model.num_hidden_layers * model.num_attention_heads * model.head_dim  # operations of attention
    cache = 2 * model.num_hidden_layers * model.num_key_value_heads * model.head_dim * size  # bytes of one token
    asked = cell.questions * cell.prompt
    found = {
        "prefill": Need(
            2 * asked * layers + 2 * cell.questions * head + per_pair * cell.questions * cell.prompt**2 / 2,
            size * (layers + head),
        ),
        "decode": Need(2 * steps * (layers + head) + per_pair * seen, columns * size * (layers + head) + cache * seen),
    }
    if cell.learns:
        found["update"] = _learning(cell, layers, head, per_pair)
        if cell.method == "full":
            found["optimiser"] = Need(0.0, ADAMW_BYTES * weights_of(model))
    return found


def _learning(cell: Cell, layers: int, head: int, per_pair: int) -> Need:
    """Forward, and backward to the activations and, but for adapters, to the weights; prompts once a group."""
    passes = 4 if cell.method == "lora" else 6
    operations = 0.0
    for row, rewards in zip(cells.lengths(cell), cells.rewards(cell), strict=True):
        if len(set(rewards)) == 1:
            continue
        pairs = cell.prompt**2 / 2 + sum(length * (cell.prompt + length / 2) for length in row)
        operations += passes * ((cell.prompt + sum(row)) * layers + sum(row) * head) + 3 * per_pair * pairs
    return Need(operations, 0.0)
