"""Resource limits: priority, cores, share of time and traffic. All can change while the engine runs."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress

import psutil

from waggle.core.settings import ComputerSettings
from waggle.core.system.process_memory import resident_bytes
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.models.backend import OpenedPolicy, threads_for, use_threads
from waggle.rl.batch import nothing

NICENESS = {"lowest": 19, "low": 10, "normal": 0}
GB = 1e9


class ResourceLimits:
    """Applies the limits of the settings. `limit_traffic` takes bytes a second (None: no limit).

    `before_thread_change` is called before the number of threads changes.
    """

    def __init__(
        self,
        gate: PauseGate,
        opened: OpenedPolicy,
        limit_traffic: Callable[[float | None], None],
        before_thread_change: Callable[[], None] = nothing,
    ) -> None:
        self._gate, self._opened = gate, opened
        self._limit_traffic, self._before_thread_change = limit_traffic, before_thread_change
        self._threads = opened.threads
        self.computer: ComputerSettings | None = None

    def apply(self, computer: ComputerSettings) -> tuple[str, ...]:
        """Apply the settings after a change. All of them apply at once, so there is no name to return."""
        self.computer = computer
        self._gate.set_percent(share_of_time(computer, self._opened.device))
        self._limit_traffic(computer.traffic_kb * 1000.0 or None)
        return ()

    def before_round(self) -> None:
        """Apply the number of cores. Call it in the policy thread, the only one in which torch can change it."""
        if self.computer is None or self._opened.backend != "torch":
            return
        threads = threads_for(self.computer.threads)
        if threads != self._threads:
            self._before_thread_change()
            use_threads(threads)
            self._threads = threads


def share_of_time(computer: ComputerSettings, device: str) -> int:
    """The percentage of time that the device may work."""
    return computer.cpu_percent if device == "cpu" else computer.gpu_percent


def set_priority(priority: str) -> bool:
    """Give this process, its threads and its children a priority; return False if the system refuses to raise it again."""
    me = psutil.Process()
    done = [_set_niceness(process, priority) for process in (me, *me.children(recursive=True))]
    return all(done)


def _set_niceness(process: psutil.Process, priority: str) -> bool:
    try:
        if sys.platform == "win32":
            classes = {"lowest": psutil.IDLE_PRIORITY_CLASS, "low": psutil.BELOW_NORMAL_PRIORITY_CLASS}
            process.nice(classes.get(priority, psutil.NORMAL_PRIORITY_CLASS))
        else:
            for number in _threads(process):  # on Linux each thread has a priority of its own
                with suppress(ProcessLookupError):  # this thread has just ended; continue with the others
                    os.setpriority(os.PRIO_PROCESS, number, NICENESS[priority])
    except psutil.NoSuchProcess:
        return True
    except (psutil.AccessDenied, PermissionError):
        return False
    return True


def _threads(process: psutil.Process) -> list[int]:
    return [thread.id for thread in process.threads()] if sys.platform == "linux" else [process.pid]


def memory_used() -> float:
    """The bytes that this process and its children use."""
    me = psutil.Process()
    return float(sum(resident_bytes(process.pid) for process in (me, *me.children(recursive=True))))
