"""Takes commands for the life of the process; while the engine restarts, they wait for the next handler."""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from waggle.core.errors import EngineError
from waggle.engine.control.server import RESTART_SECONDS
from waggle.protocol.commands import AnyCommand, Stop
from waggle.protocol.state import AnyEvent

log = logging.getLogger(__name__)


class CommandHandler(Protocol):
    """Obeys commands: this process's own engine, or the followed engine of another process."""

    async def obey(self, command: AnyCommand) -> tuple[AnyEvent, ...]: ...

    def stop(self) -> None: ...


class CommandQueue:
    """Hands commands to the handler that is attached. `stopped` is true from the first request to end the engine on."""

    def __init__(self) -> None:
        self._handler: CommandHandler | None = None
        self._is_attached = asyncio.Event()
        self._stop_callbacks: list[Callable[[], object]] = []
        self.stopped = False

    def attach(self, handler: CommandHandler) -> None:
        """Hand commands to this handler from now on, first those that wait. After a stop, stop it at once."""
        self._handler = handler
        self._is_attached.set()
        if self.stopped:
            handler.stop()

    def detach(self) -> None:
        """Let commands wait for the next handler."""
        self._handler = None
        self._is_attached.clear()

    def call_on_stop(self, callback: Callable[[], object]) -> None:
        """Call this at each request to end the engine, and now if there was one already."""
        self._stop_callbacks.append(callback)
        if self.stopped:
            callback()

    def stop(self) -> None:
        """End the engine, also in the middle of a restart."""
        self._note_stop()
        if self._handler is not None:
            self._handler.stop()

    async def obey(self, command: AnyCommand) -> tuple[AnyEvent, ...]:
        """Wait for a handler, and return its answers. Raises WaggleError for what cannot be done."""
        if isinstance(command, Stop):
            self._note_stop()  # before the wait: a restart that is under way must end as a stop
        try:
            async with asyncio.timeout(RESTART_SECONDS):
                while (handler := self._handler) is None:  # it may be detached again before this task wakes up
                    await self._is_attached.wait()
        except TimeoutError as error:
            log.debug("%s waited %.0f s for a handler", type(command).__name__, RESTART_SECONDS)
            raise EngineError("Training is starting again.", "Try again in a moment.") from error
        return await handler.obey(command)

    def _note_stop(self) -> None:
        self.stopped = True
        for callback in self._stop_callbacks:
            callback()
