"""Undo of choices: a model or swarm that was chosen and cannot start is exchanged for the one before."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from waggle.core.errors import (
    CharterError,
    CheckpointError,
    HistoryError,
    IdentityError,
    MemoryShort,
    ModelMissing,
    SwarmError,
    WaggleError,
)
from waggle.core.message import Message, in_turn

log = logging.getLogger(__name__)

NOT_CAUSED_BY_MODEL = (SwarmError, CharterError)  # failures that no choice of a model causes
NOT_CAUSED_BY_SWARM = (ModelMissing,)
AS_BEFORE = Message("All is as it was before.")
NOT_CAUSED_BY_EITHER = (MemoryShort, CheckpointError, HistoryError, IdentityError)  # except by a choice of this very run


@dataclass(frozen=True)
class UndoStep:
    """How to undo a choice that has not played a round yet.

    `undo` may return a message in place of `message`. `unrelated` are the failures that the choice cannot have caused. If the
    step `replaces_advice`, its `message` stands in place of the failure's advice, which leads nowhere once the choice is undone.
    """

    undo: Callable[[], object]
    unrelated: tuple[type[WaggleError], ...] = ()
    message: Message = AS_BEFORE
    replaces_advice: bool = False

    def advice(self, error: WaggleError) -> Message:
        """The advice for a person who reads of this failure after the choice was undone."""
        return self.message if self.replaces_advice else in_turn(error.advice, self.message)


class UndoLog:
    """The choices that have not played a round yet, oldest first."""

    def __init__(self) -> None:
        self.steps: list[UndoStep] = []

    def add(self, steps: Iterable[UndoStep]) -> None:
        self.steps += steps

    def clear(self) -> None:
        """Accept every choice: a round was played with it."""
        self.steps.clear()

    def suspects(self, failure: type[BaseException]) -> list[UndoStep]:
        """The choices that may have caused a failure of this kind."""
        return [step for step in self.steps if not issubclass(failure, step.unrelated)]

    def undo(self, failure: type[BaseException]) -> list[UndoStep]:
        """Undo every suspect, the newest first, and return them. Raises WaggleError where the disk refuses."""
        undone: list[UndoStep] = []
        for step in reversed(self.suspects(failure)):
            log.info("undo a choice after %s", failure.__name__)
            self.steps.remove(step)  # before the call: a step that fails must not be tried again for ever
            message = step.undo()
            undone.insert(0, replace(step, message=message) if isinstance(message, Message) else step)
        return undone
