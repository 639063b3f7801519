"""Decoding on a CUDA card: a step is recorded once and then replayed, for telling a card its work takes longer than the work.

What is recorded knows no numbers: it reads as many columns at every step, with a mask over those still to come. It is recorded
anew where more are needed, twice as many each time, and where rows are left out.
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

FIRST_COLUMNS = 64
Compute = Callable[[], torch.Tensor]
Repeat = Callable[[Compute], torch.Tensor]  # has the same thing computed again and again
log = logging.getLogger(__name__)


class CudaGraphs:
    """Those of one policy, one after another in the same memory: only the newest may be replayed."""

    def __init__(self) -> None:
        self._newest: torch.cuda.CUDAGraph | None = None
        self._possible = True

    def begin(self) -> "GraphedStep":
        """Another one, of something else."""
        return GraphedStep(self)

    def record(self, compute: Compute) -> tuple[torch.cuda.CUDAGraph, torch.Tensor] | None:
        """What can be replayed, and where its outcome is then; None where memory is too short for that, or where this card or its
        driver cannot do it, which is not tried again."""
        for _ in range(2 if self._possible else 0):
            try:
                return self._recorded(compute)
            except MemoryShort:
                give_back_on_cards()  # of what is free but kept, a recording can take nothing
            except RuntimeError as error:
                log.warning("A step of decoding cannot be recorded on this card: %s", error)
                self._possible = False
                break
        return None

    def _recorded(self, compute: Compute) -> tuple[torch.cuda.CUDAGraph, torch.Tensor]:
        graph, memory = torch.cuda.CUDAGraph(), self._newest.pool() if self._newest else None
        with memory_errors(), on_capture_stream():
            graph.capture_begin(pool=memory, capture_error_mode="thread_local")
            try:
                output = compute()
            except BaseException:
                with contextlib.suppress(RuntimeError):  # it ends broken, which is known
                    graph.capture_end()
                raise
            graph.capture_end()
        self._newest = graph
        return graph, output


class GraphedStep:
    """Computed at the first call, which makes ready whatever is made once; recorded at the second, and replayed from then on."""

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
    """On the stream that recordings are made on: what lies before is waited for, and what comes after waits."""
    usual, own = torch.cuda.current_stream(), _stream(torch.cuda.current_device())
    own.wait_stream(usual)
    try:
        with torch.cuda.stream(own):
            yield
    finally:
        usual.wait_stream(own)


@functools.cache
def _stream(_device: int) -> torch.cuda.Stream:
    """Nothing may be recorded on the stream of everything else. All policies share one: what libraries keep for it stays."""
    return torch.cuda.Stream()  # type: ignore[no-untyped-call]


class GraphDecodingBatch(TorchDecodingBatch):
    """The rows of one call of `sample` in steps that are all alike; `begin` gives what has those of one shape computed."""

    drop_below = 0.25  # a card has room for rows that ended, and leaving them out means another recording

    def __init__(self, begin: Callable[[], Repeat], *arguments: Any) -> None:
        super().__init__(*arguments)
        device, columns = self._device, self._params.max_new
        self._begin = begin
        self._column = torch.zeros(1, dtype=torch.int64, device=device)  # that the newest tokens belong to
        self._columns = torch.arange(columns, device=device)
        self._width = 0  # how many of them a step reads
        self._newest = self._picked  # in the same memory at every step
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
        self._logits = self._repeat(self._fed)

    def _fed(self) -> torch.Tensor:
        """The logits (rows, V) after the newest tokens; whatever changes from step to step is read from the device."""
        width = self._width
        to_come = torch.zeros(width, device=self._device, dtype=self._model.precision)
        to_come.masked_fill_(self._columns[:width] > self._column, -torch.inf)

        def attend(layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            keys, values = self._caches[layer]
            keys.index_copy_(2, self._column, k[:, :, None])
            values.index_copy_(2, self._column, v[:, :, None])
            return self._attended(layer, q, keys[:, :, :width], values[:, :, :width], to_come)

        hidden = self._model.hidden(self._newest, self._ahead + self._column, attend)
        return self._model.logits(hidden, self._params.temperature)
