"""Commands to the engine as coroutines: `await client.command(...)` returns its answer, or raises why there is none."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from PySide6.QtCore import QObject, Signal

from waggle.core.errors import EngineEnded, EngineError, NoEngine
from waggle.protocol.commands import (
    AnyCommand,
    ListModels,
    ListSwarms,
    OfferChat,
    QueryDays,
    QueryHistory,
    QueryRuns,
)
from waggle.protocol.events import CommandDone, CommandRefused, Event
from waggle.protocol.state import AnyEvent, State

REPEATED = (ListModels, ListSwarms, OfferChat, QueryDays, QueryHistory, QueryRuns)  # pages send these again by themselves
WITHOUT_ANSWERS = ("preparing", "problem", "stopped")  # phases whose beginning ends what was asked before

Answer = TypeVar("Answer", bound=Event)


@dataclass
class _Awaited:
    """What an answer is awaited in, its kind, and the newest event of that kind: an answer comes right before CommandDone."""

    future: asyncio.Future[Any]
    kind: type[Event]
    answer: Event | None = None


class EngineClient(QObject):
    """Sends commands through `send`, which returns False if no engine takes one, and awaits their answers among the events.

    `refused` carries title and advice of a command that nobody awaits, or whose error could not be shown where it was asked.
    `recorded`: what is shown is a recorded run.
    """

    refused = Signal(object, object)  # messages: Qt would carry a text without their id

    def __init__(self, send: Callable[[AnyCommand], bool] = lambda _command: False, *, recorded: bool = False) -> None:
        super().__init__()
        self._send, self._recorded = send, recorded
        self._awaited: dict[str, _Awaited] = {}  # by the id of the command
        self._waiting = list[tuple[Callable[[State], bool], asyncio.Future[None]]]()
        self.state = State()

    def send(self, command: AnyCommand) -> bool:
        """Send a command without awaiting its answer; `refused` follows if it is not carried out. False if no engine takes it."""
        is_sent = self._send(command)
        if not is_sent and not isinstance(command, REPEATED):
            self.report(self._unsent())
        return is_sent

    def command(self, command: AnyCommand) -> asyncio.Future[CommandDone]:
        """Send a command at once, and await that it was carried out.

        Raises EngineError with the reason if it is refused, NoEngine, and EngineEnded.
        """
        return self.ask(command, CommandDone)

    def ask(self, command: AnyCommand, answer: type[Answer]) -> asyncio.Future[Answer]:
        """The same for a command that has an answer of this kind."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        if self._send(command):
            self._awaited[command.id] = _Awaited(future, answer)
        else:
            _fail(future, self._unsent())
        return future

    def report(self, error: EngineError) -> None:
        """Have an error shown that nobody can see where it was asked."""
        self.refused.emit(error.title, error.advice)

    async def until(self, condition: Callable[[State], bool]) -> None:
        """Wait for an event of the engine after which the State meets a condition; not at all if it does now."""
        if not condition(self.state):
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((condition, future))
            await future

    async def until_heard(self) -> None:
        """Wait for the next event of the engine."""
        now = self.state
        await self.until(lambda state: state is not now)

    def take(self, event: AnyEvent, state: State) -> None:
        """Take an event of the engine, and the State after it."""
        before, self.state = self.state.phase, state
        match event:
            case CommandDone() if event.id in self._awaited:
                awaited = self._awaited.pop(event.id)
                if not awaited.future.done():
                    awaited.future.set_result(event if awaited.kind is CommandDone else awaited.answer)
            case CommandRefused():
                error = EngineError(event.title, event.advice)
                if event.id in self._awaited:
                    _fail(self._awaited.pop(event.id).future, error)
                else:
                    self.report(error)
            case _:
                for awaited in self._awaited.values():
                    if isinstance(event, awaited.kind):
                        awaited.answer = event
        if state.phase in WITHOUT_ANSWERS and before not in WITHOUT_ANSWERS:
            self._end_waiting()
        self._waiting = [(condition, future) for condition, future in self._waiting if not _is_met(condition, future, state)]

    def _end_waiting(self) -> None:
        awaited, self._awaited = self._awaited, {}
        for each in awaited.values():
            _fail(each.future, EngineEnded("The engine ended before it answered."))

    def _unsent(self) -> EngineError:
        if self._recorded:
            return EngineError("This is a recorded run: nothing was done.")
        return NoEngine("Training is not running: nothing was done.")


def _is_met(condition: Callable[[State], bool], future: asyncio.Future[None], state: State) -> bool:
    """Whether a future waits for no other State any more; ends it if this is the one."""
    if not future.done() and condition(state):
        future.set_result(None)
    return future.done()


def _fail(future: asyncio.Future[Any], error: EngineError) -> None:
    """End a future with an error, which is no fault if its asker has left meanwhile."""
    if not future.done():
        future.set_exception(error)
        future.exception()
