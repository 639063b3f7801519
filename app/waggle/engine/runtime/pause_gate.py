"""The pause gate between two steps of a round: open while contributing, closed during a pause; it raises Stopped at the end.

At the gate the policy thread also rests, if it may work for a share of the time only, and does errands for other threads: the
model is its alone.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from waggle.core.errors import Stopped

MIN_REST_SECONDS = 0.01  # shorter rests add up first: a system sleeps no shorter than a few milliseconds
MAX_WORK_SECONDS = 60.0  # of one step that a rest makes up for: no rest of an hour after one long step
MAX_STRETCH_SECONDS = 600.0  # of one step that count as work: on Windows the clock runs on while the computer sleeps
Result = TypeVar("Result")


def _always() -> bool:
    return True


@dataclass(frozen=True)
class _Errand:
    work: Callable[[], Any]
    is_ready: Callable[[], bool]
    result: "Future[Any]"


class PauseGate:
    """The policy thread calls it between steps; the engine's loop opens and closes it. A stop is final.

    `percent` is the share of time that may be worked. `on_waiting` is called in the waiting thread.
    """

    def __init__(self, on_waiting: Callable[[], None], clock: Callable[[], float] = time.perf_counter) -> None:
        self._percent = 100
        self._counted_seconds = 0.0
        self._clock = clock
        self._passed_at: float | None = None
        self._owed_seconds = 0.0  # seconds of rest
        self._condition = threading.Condition()
        self._closed = False
        self._times_opened = 0  # a count: a thread may wake only after the gate has closed again, and must then report again
        self._stopping = False
        self._on_waiting = on_waiting
        self._errands: deque[_Errand] = deque()
        self._policy_thread: int | None = None  # downloads sleep at the gate, too, in threads of their own

    @property
    def percent(self) -> int:
        return self._percent

    def set_percent(self, percent: int) -> None:
        """Apply another share at once: this ends a rest under the old one."""
        with self._condition:
            self._percent = percent
            self._condition.notify_all()

    def __call__(self) -> None:
        """Pass the gate; while it is closed, report that the policy thread waits, and wait. Raises Stopped at a stop."""
        self._policy_thread = threading.get_ident()
        while True:
            with self._condition:
                self._rest()
                self._count()
                self._wait()
                if (errand := self._next_errand(at_rest=self._closed)) is None:
                    self._passed_at = self._clock()
                    return
            _do(errand)

    def submit(self, work: Callable[[], Result], is_ready: Callable[[], bool] = _always) -> "Future[Result]":
        """Let the policy thread do this at its next pass, or at once where it waits or sleeps.

        At a pass, it waits until `is_ready` is true, which is asked often. The future raises Stopped if the engine stops before.
        """
        errand = _Errand(work, is_ready, Future())
        with self._condition:
            if self._stopping:
                errand.result.set_exception(Stopped())
            else:
                self._errands.append(errand)
                self._condition.notify_all()
        return errand.result

    def _next_errand(self, *, at_rest: bool) -> _Errand | None:
        """Take the first errand that can be done now. `at_rest`: nothing will change before long, so none waits."""
        errand = next((each for each in self._errands if at_rest or each.is_ready()), None)
        if errand is not None:
            self._errands.remove(errand)
        return errand

    def wait_until_open(self) -> None:
        """Wait while the gate is closed, in a thread whose work does not count, such as a download. Raises Stopped."""
        with self._condition:
            self._wait()

    def _count(self) -> None:
        """Add the work since the last pass; time counts as work again from the next pass on."""
        self._counted_seconds, self._passed_at = self.worked_seconds, None

    def _wait(self) -> None:
        while self._closed and not self._stopping:
            self._on_waiting()
            times_opened = self._times_opened
            self._condition.wait_for(lambda: self._stopping or self._has_errands or self._times_opened != times_opened)  # noqa: B023 - called in this turn only
            if self._has_errands:
                break
        if self._stopping:
            raise Stopped

    @property
    def _has_errands(self) -> bool:
        """Whether there are errands for the thread that asks."""
        return bool(self._errands) and threading.get_ident() == self._policy_thread

    def _rest(self) -> None:
        """Rest for the work since the last pass. A pause, a stop, an errand or another percentage ends the rest early."""
        if self._passed_at is None:
            return
        worked = min(MAX_WORK_SECONDS, self._clock() - self._passed_at)
        self._owed_seconds += worked * (100 / self.percent - 1)
        if self._owed_seconds >= MIN_REST_SECONDS:
            percent_before = self.percent
            self._condition.wait_for(
                lambda: (
                    self._stopping
                    or self._closed
                    or self.percent != percent_before
                    or any(each.is_ready() for each in self._errands)
                ),
                self._owed_seconds,
            )
            self._owed_seconds = 0.0

    def sleep(self, seconds: float) -> None:
        """Let time pass that does not count as work. Raises Stopped as soon as the engine stops."""
        ends = time.monotonic() + seconds
        while True:
            with self._condition:
                self._count()
                self._condition.wait_for(lambda: self._stopping or self._has_errands, ends - time.monotonic())
                if self._stopping:
                    raise Stopped
                if not self._has_errands:
                    return
                errand = self._errands.popleft()
            _do(errand)

    @property
    def worked_seconds(self) -> float:
        """The seconds that the policy thread has worked and rested. Pauses and the computer's sleep do not count."""
        with self._condition:
            return self._counted_seconds + (
                0.0 if self._passed_at is None else min(MAX_STRETCH_SECONDS, self._clock() - self._passed_at)
            )

    @property
    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def open(self) -> None:
        with self._condition:
            self._closed = False
            self._times_opened += 1
            self._condition.notify_all()

    def stop(self) -> None:
        with self._condition:
            self._stopping = True
            while self._errands:
                self._errands.popleft().result.set_exception(Stopped())
            self._condition.notify_all()


def _do(errand: _Errand) -> None:
    if not errand.result.set_running_or_notify_cancel():
        return
    try:
        errand.result.set_result(errand.work())
    except Exception as error:  # noqa: BLE001 - it belongs to the thread that waits for the result
        errand.result.set_exception(error)
