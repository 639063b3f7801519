"""Takes commands for the life of the process; while the engine restarts, they wait for the next handler."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from waggle.core.errors import (
    CharterError,
    CheckpointError,
    EngineError,
    HistoryError,
    IdentityError,
    MemoryShort,
    ModelMissing,
    SwarmError,
    WaggleError,
)
from waggle.engine.control.server import RESTART_SECONDS
from waggle.engine.storage.pause_request import PauseRequest
from waggle.protocol.commands import AnyCommand, Stop
from waggle.protocol.state import AnyEvent
from waggle.rl.batch import nothing

log = logging.getLogger(__name__)

NOT_CAUSED_BY_MODEL, NOT_CAUSED_BY_SWARM = (
    (SwarmError, CharterError),
    (ModelMissing,),
)  # failures that the choice of one has nothing to do with
NOT_CAUSED_BY_EITHER = (MemoryShort, CheckpointError, HistoryError, IdentityError)  # unless it was chosen just now


class CommandHandler(Protocol):
    """Obeys commands: this process's own engine, or the followed engine of another process."""

    async def obey(self, command: AnyCommand) -> tuple[AnyEvent, ...]: ...

    def stop(self) -> None: ...


@dataclass(frozen=True)
class UndoStep:
    """Undoes something that was chosen and has not begun; no failure of the kinds that it is `innocent` of is its own.

    `settles`: what the failure advises is no more to be done then.
    """

    go: Callable[[], object]
    innocent: tuple[type[WaggleError], ...] = ()
    says: str = "All is as it was before."
    settles: bool = False

    def advice(self, error: WaggleError) -> str:
        """What a person is told to do who hears of this failure, and that it was undone."""
        return self.says if self.settles else f"{error.advice} {self.says}".strip()


class CommandQueue:
    """One for the life of the process. `reason` says why the engine starts again; empty when it does not."""

    def __init__(self) -> None:
        self._sitter: CommandHandler | None = None
        self._there = asyncio.Event()
        self.pause_request = PauseRequest()
        self.reason = ""
        self.back: list[UndoStep] = []  # the newest last
        self.stopped = False
        self.leaving: Callable[[], object] = nothing  # called when the engine is told to end

    def sit(self, sitter: CommandHandler) -> None:
        """Hand commands to this handler from now on, also those that wait."""
        self._sitter = sitter
        self._there.set()
        if self.stopped:
            sitter.stop()

    def rise(self) -> None:
        """Let commands wait for the next handler."""
        self._sitter = None
        self._there.clear()

    def stop(self) -> None:
        """End the engine, also in the middle of starting again."""
        self._leave()
        if self._sitter is not None:
            self._sitter.stop()

    def to_blame(self, failure: type[BaseException]) -> list[UndoStep]:
        """What was chosen, has not begun, and may have led to a failure of this kind."""
        return [choice for choice in self.back if not issubclass(failure, choice.innocent)]

    def go_back(self, failure: type[BaseException]) -> list[UndoStep]:
        """Undo that, the newest first; what was undone. Raises WaggleError where the disk says no."""
        blamed = self.to_blame(failure)
        for choice in reversed(blamed):
            log.info("undo a choice after %s", failure.__name__)
            self.back.remove(choice)
            choice.go()
        return blamed

    async def obey(self, command: AnyCommand) -> tuple[AnyEvent, ...]:
        """Raises WaggleError for what cannot be done."""
        if isinstance(command, Stop):
            self._leave()
        try:
            async with asyncio.timeout(RESTART_SECONDS):
                while (sitter := self._sitter) is None:  # it may have risen again before this is heard
                    await self._there.wait()
        except TimeoutError as error:
            log.debug("%s waited %.0f s for an engine that starts", type(command).__name__, RESTART_SECONDS)
            raise EngineError("The engine is starting again.", "Try again in a moment.") from error
        return await sitter.obey(command)

    def _leave(self) -> None:
        self.stopped = True
        self.leaving()
