"""What the engine offers its node, and what decides how its model is found and opened."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from waggle.core.settings import ComputerSettings
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.network.web.training_status import TrainingStatus
from waggle.rl.batch import nothing


@dataclass(frozen=True)
class NodeHost:
    """What the engine offers its node: where it publishes, computes, waits and stops, and what its status page shows of it."""

    publisher: EventPublisher
    policy_thread: ThreadPoolExecutor
    gate: PauseGate
    stopped: asyncio.Event
    training: Callable[[], TrainingStatus | None] = lambda: None


@dataclass(frozen=True)
class LiveChoices:
    """The settings that a node follows while it runs, as they are at each call."""

    computer: Callable[[], ComputerSettings] = ComputerSettings
    may_share: Callable[[], bool] = lambda: False  # whether a person's own answers may leave this computer


@dataclass(frozen=True)
class ModelOpening:
    """How to find and open the model."""

    parts_for: Callable[[int], int] = int  # see model_fit.fit_model
    restart: Callable[[str], None] = nothing  # takes the reason
    patient: bool = False  # if the model cannot be had, ask a person, and wait for it; otherwise fail
