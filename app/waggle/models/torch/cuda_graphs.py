"""Decoding with CUDA graphs: a step is captured once and then replayed, because launching its kernels takes longer than they do.

A graph has fixed shapes: each step reads the same number of cache columns, with a mask over those to come. A new graph is
captured if more columns are needed (their number doubles) or rows are dropped.
"""

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from waggle.core.errors import MemoryShort
from waggle.models.torch.decoding import TorchDecodingBatch
from waggle.models.torch.memory import give_back_on_cards, memory_errors

FIRST_COLUMNS = 64  # columns of the first graph
Compute = Callable[[], torch.Tensor]
Repeat = Callable[[Compute], torch.Tensor]  # computes the same function again and again
log = logging.getLogger(__name__)


class CudaGraphs:
    """The graphs of one policy, which share one memory pool: only the newest may be replayed."""

    def __init__(self) -> None:
        self._newest: torch.cuda.CUDAGraph | None = None
        self._possible = True

    def begin(self) -> "GraphedStep":
        """A new step, for other shapes."""
        return GraphedStep(self)

    def record(self, compute: Compute) -> tuple[torch.cuda.CUDAGraph, torch.Tensor] | None:
        """A graph and its output; None if memory is short, or if this GPU or driver cannot capture, which is not retried."""
        for _ in range(2 if self._possible else 0):
            try:
                return self._capture(compute)
            except MemoryShort:
                give_back_on_cards()  # a capture cannot use cached free blocks
            except RuntimeError as error:
                log.warning("A decoding step cannot be captured as a CUDA graph on this GPU: %s", error)
                self._possible = False
                break
        return None

    def _capture(self, compute: Compute) -> tuple[torch.cuda.CUDAGraph, torch.Tensor]:
        graph, memory = torch.cuda.CUDAGraph(), self._newest.pool() if self._newest else None
        with memory_errors(), on_capture_stream():
            graph.capture_begin(pool=memory, capture_error_mode="thread_local")
            try:
                output = compute()
            except BaseException:
                with contextlib.suppress(RuntimeError):  # the capture is invalid, as expected
                    graph.capture_end()
                raise
            graph.capture_end()
        self._newest = graph
        return graph, output


class GraphedStep:
    """One decoding step: the first call computes it (a warm-up), the second captures it, later ones replay it."""

    def __init__(self, recordings: CudaGraphs) -> None:
        self._recordings = recordings
        self._calls = 0
        self._recorded: tuple[torch.cuda.CUDAGraph, torch.Tensor] | None = None

    def __call__(self, compute: Compute) -> torch.Tensor:
        self._calls += 1
        if self._calls == 2:
            self._recorded = self._recordings.record(compute)
        if self._recorded is None:
            with on_capture_stream():
                return compute()
        graph, output = self._recorded
        graph.replay()
        return output


@contextlib.contextmanager
def on_capture_stream() -> Iterator[None]:
    """Switch to the capture stream. It waits for earlier work, and later work waits for it."""
    usual, own = torch.cuda.current_stream(), _stream(torch.cuda.current_device())
    own.wait_stream(usual)
    try:
        with torch.cuda.stream(own):
            yield
    finally:
        usual.wait_stream(own)


@functools.cache
def _stream(_device: int) -> torch.cuda.Stream:
    """CUDA cannot capture on the default stream. All policies share this one, because libraries keep a workspace per stream."""
    return torch.cuda.Stream()  # type: ignore[no-untyped-call]


class GraphDecodingBatch(TorchDecodingBatch):
    """The rows of one call of `sample`, whose steps have fixed shapes. `begin` returns a step that is captured and replayed."""

    drop_below = 0.25  # finished rows cost a GPU little, and dropping them needs another graph

    def __init__(self, begin: Callable[[], Repeat], *arguments: Any) -> None:
        super().__init__(*arguments)
        device, columns = self._device, self._params.max_new
        self._begin = begin
        self._column = torch.zeros(1, dtype=torch.int64, device=device)  # the column of the newest tokens
        self._columns = torch.arange(columns, device=device)
        self._width = 0  # columns that a step reads
        self._newest = self._picked  # a tensor at the same address at every step
        self._repeat: Repeat | None = None

    def keep(self, rows: NDArray[np.int64]) -> None:
        super().keep(rows)
        self._repeat = None

    def advance(self, column: int) -> None:
        if column >= self._width:
            self._width, self._repeat = min(max(FIRST_COLUMNS, 2 * self._width), self._params.max_new), None
        if self._repeat is None:
            self._newest, self._repeat = self._picked.clone(), self._begin()
        self._column.fill_(column)
        self._newest.copy_(self._picked)
        self._logits = self._repeat(self._compute_logits)

    def _compute_logits(self) -> torch.Tensor:
        """Return the logits (rows, V) after the newest tokens. All that changes from step to step is read from tensors."""
        width = self._width
        masks = {window: (self._prompt_mask(window, self._column), self._own_mask(window)) for window in set(self._windows)}

        def attend(layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            keys, values = self._caches[layer]
            keys.index_copy_(2, self._column, k[:, :, None])
            values.index_copy_(2, self._column, v[:, :, None])
            return self._attention(layer, q, keys[:, :, :width], values[:, :, :width], *masks[self._windows[layer]])

        hidden = self._model.hidden(self._newest, self._ahead + self._column, attend)
        return self._model.logits(hidden, self._params.temperature)

    def _own_mask(self, window: int | None) -> torch.Tensor:
        """(columns,): what is added to the scores of a row's own tokens: it sees none to come, and none before its window."""
        columns = self._columns[: self._width]
        unseen = columns > self._column
        if window is not None:
            unseen |= columns <= self._column - window
        mask = torch.zeros(self._width, device=self._device, dtype=self._model.precision)
        return mask.masked_fill_(unseen, -torch.inf)
