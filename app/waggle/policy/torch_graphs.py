"""Decoding on a CUDA card: a step is recorded once and then replayed, for to tell a card what to do takes longer than doing it.

What is recorded knows no numbers: it reads all columns up to the next power of two, with a mask over those still to come. It is
recorded anew where these are used up, and where rows are left out.
"""

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from waggle.errors import MemoryShort
from waggle.policy.torch_decoding import TorchRows
from waggle.policy.torch_memory import memory_errors

FIRST_COLUMNS = 64
Compute = Callable[[], torch.Tensor]
Tell = Callable[[Compute], torch.Tensor]  # has the same thing computed again and again
log = logging.getLogger(__name__)


class Recordings:
    """Those of one policy: one after another, in the same memory."""

    def __init__(self) -> None:
        # What is recorded may not be told to the stream of everything else. Each stream keeps tens of megabytes: one is enough.
        self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._last: torch.cuda.CUDAGraph | None = None

    def begin(self) -> "Recording":
        """Another one: nobody may need the last one any more."""
        return Recording(self)

    def listen(self, compute: Compute) -> tuple[torch.cuda.CUDAGraph, torch.Tensor] | None:
        """What it takes to replay it, and where its outcome will be; None where this card or its driver cannot do that.

        Raises MemoryShort.
        """
        graph, memory = torch.cuda.CUDAGraph(), self._last.pool() if self._last else None
        try:
            with memory_errors(), self.aside():
                graph.capture_begin(pool=memory, capture_error_mode="thread_local")
                try:
                    found = compute()
                except BaseException:
                    with contextlib.suppress(RuntimeError):  # it ends broken, which is known
                        graph.capture_end()
                    raise
                graph.capture_end()
        except MemoryShort:
            raise
        except RuntimeError as error:
            log.warning("A step of decoding cannot be recorded on this card: %s", error)
            return None
        self._last = graph
        return graph, found

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """On a stream of its own: what lies before is waited for, and what comes after waits."""
        usual = torch.cuda.current_stream()
        self._stream.wait_stream(usual)
        with torch.cuda.stream(self._stream):
            yield
        usual.wait_stream(self._stream)


class Recording:
    """Told at the first call, which makes ready whatever is made once; recorded at the second, and replayed from then on."""

    def __init__(self, recordings: Recordings) -> None:
        self._recordings = recordings
        self._calls = 0
        self._recorded: tuple[torch.cuda.CUDAGraph, torch.Tensor] | None = None

    def __call__(self, compute: Compute) -> torch.Tensor:
        """Raises MemoryShort."""
        self._calls += 1
        if self._calls == 2:
            self._recorded = self._recordings.listen(compute)
        if self._recorded is None:
            with self._recordings.aside():
                return compute()
        graph, found = self._recorded
        graph.replay()
        return found


class RecordedRows(TorchRows):
    """The rows of one call of `sample` in steps that are all alike; `begin` gives who tells the card those of one shape."""

    drop_below = 0.25  # a card has room for rows that ended, and leaving them out means another recording

    def __init__(self, begin: Callable[[], Tell], *arguments: Any) -> None:
        super().__init__(*arguments)
        device, columns = self._device, self._params.max_new
        self._begin = begin
        self._column = torch.zeros(1, dtype=torch.int64, device=device)  # that the newest tokens belong to
        self._columns = torch.arange(columns, device=device)
        self._width = 0  # how many of them a step reads
        self._newest = self._picked  # in the same memory at every step
        self._tell: Tell | None = None

    def keep(self, rows: NDArray[np.int64]) -> None:
        super().keep(rows)
        self._tell = None

    def advance(self, column: int) -> None:
        if column >= self._width:
            self._width, self._tell = min(max(FIRST_COLUMNS, 2 * self._width), self._params.max_new), None
        if self._tell is None:
            self._newest, self._tell = self._picked.clone(), self._begin()
        self._column.fill_(column)
        self._newest.copy_(self._picked)
        self._logits = self._tell(self._fed)

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
