"""The clock of the benchmark: seconds of CPU by phase, for a process that has one core and one thread."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
ROUND = "round"  # the phase that holds all others
SYSTEM = "system"  # no phase: the seconds of the update that the system took


@dataclass(frozen=True)
class Measured:
    """What one process measured: the phases of each round, in seconds, and whether the weights moved at all."""

    rounds: list[dict[str, float]]
    moved: float  # mean absolute change of some trained numbers since before the warm-up
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
        """The seconds so far; then begin again."""
        taken, self._seconds = self._seconds, {}
        return taken


def with_update(taken: dict[str, float]) -> dict[str, float]:
    """What belongs to no other phase is the update's: that is where trainers spend it."""
    return taken | {"update": taken[ROUND] - sum(seconds for phase, seconds in taken.items() if phase != ROUND)}


def clock_of(device: str) -> Callable[[], float]:
    """What counts there."""
    return time.process_time if device == "cpu" else _synchronised


def of_system() -> float:
    """The seconds that the process spent in the system: most of them to be given memory, page by page."""
    return os.times().system


def _synchronised() -> float:
    """Of a GPU the time on the wall counts, once it has done what it was told."""
    import torch

    torch.cuda.synchronize()
    return time.perf_counter()


def peak_gib() -> float:
    """The most memory that this process ever had, loading included."""
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30
