"""The clock of the benchmark: CPU seconds by phase, for a process with one core and one thread."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
ROUND = "round"  # the phase around all others
SYSTEM = "system"  # not a phase: the part of the update that was spent in the kernel


@dataclass(frozen=True)
class Measurement:
    """What one process measured: seconds by phase for each round, and how far the weights moved."""

    rounds: list[dict[str, float]]
    moved: float  # mean absolute change of one trained weight matrix since before the warm-up
    more: dict[str, float] = field(default_factory=dict)


class Phases:
    """Seconds by phase since the last `take`."""

    def __init__(self, now: Callable[[], float] = time.process_time) -> None:
        self._now = now
        self._seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def of(self, phase: str) -> Iterator[None]:
        began = self._now()
        try:
            yield
        finally:
            self._seconds[phase] = self._seconds.get(phase, 0.0) + self._now() - began

    def timed(self, phase: str, function: Callable[P, T]) -> Callable[P, T]:
        def wrapped(*arguments: P.args, **named: P.kwargs) -> T:
            with self.of(phase):
                return function(*arguments, **named)

        return wrapped

    def take(self) -> dict[str, float]:
        """Return the seconds so far and start from zero."""
        seconds, self._seconds = self._seconds, {}
        return seconds


def with_update(seconds_by_phase: dict[str, float]) -> dict[str, float]:
    """Add the phase `update`: the part of a round outside all other phases, which a trainer spends on learning."""
    return seconds_by_phase | {
        "update": seconds_by_phase[ROUND]
        - sum(phase_seconds for phase, phase_seconds in seconds_by_phase.items() if phase != ROUND)
    }


def clock_of(device: str) -> Callable[[], float]:
    """The clock for a device: CPU seconds, or wall-clock seconds of a GPU."""
    return time.process_time if device == "cpu" else _seconds_of_gpu


def system_seconds() -> float:
    """CPU seconds of this process in the kernel, mostly for mapping memory page by page."""
    return os.times().system


def _seconds_of_gpu() -> float:
    """Wall-clock seconds, after the GPU has finished all queued work."""
    import torch

    torch.cuda.synchronize()
    return time.perf_counter()


def peak_gib() -> float:
    """The peak memory of this process (GiB), including the loading of the model."""
    import resource

    # ru_maxrss is in bytes on macOS and in KiB elsewhere
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30
