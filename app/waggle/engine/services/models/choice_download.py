"""The download of a chosen model, or the conversion of its GGUF file, beside the training of the present one.

That one is let go only once the new one is complete and checked, so a choice that fails costs nothing.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from waggle.core.errors import EngineError, Stopped, WaggleError
from waggle.core.message import Message, as_message
from waggle.core.settings import ModelSettings
from waggle.engine.runtime import model_source
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.protocol.events_models import ModelChoice, Stage

UNEXPECTED = Message("The model could not be downloaded, for a reason that Waggle did not expect.")
REPORT = Message("Copy the report on the page Help and send it to us.")


def _stage_of(model: ModelSettings) -> Stage:
    return "downloading" if model.name else "converting"


def _choice(model: ModelSettings, stage: Stage, title: str = "", advice: str = "") -> ModelChoice:
    return ModelChoice(name=model.name, folder=model.folder, stage=stage, title=as_message(title), advice=as_message(advice))


class ModelTaker(Protocol):
    """What a download needs of the service that chooses models. It is another one after each restart of the engine."""

    def examine(self, folder: Path) -> None:
        """Called in the downloading thread when the configuration has arrived. Raises ModelError to end the download."""

    async def check(self, model: ModelSettings) -> None:
        """Check a model that is complete. Raises WaggleError if it cannot be trained."""

    def begin(self, model: ModelSettings) -> None:
        """Train a model that was checked, from now on. Raises WaggleError; then nothing has changed."""


@dataclass(frozen=True)
class _Pending:
    model: ModelSettings
    gate: PauseGate = field(default_factory=lambda: PauseGate(lambda: None))  # a pause of training does not hold a download
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    def stop(self) -> None:
        self.stopped.set()
        self.gate.stop()


class ChoiceDownload:
    """At most one download, which a restart of the engine within its process does not interrupt. Used on the engine's loop."""

    def __init__(self, publisher: EventPublisher, limit: Callable[[], float] = lambda: 0.0) -> None:
        """`limit` returns the bytes a second that are allowed now; 0: no limit."""
        self._publisher, self._limit = publisher, limit
        self._pending: _Pending | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._taker: asyncio.Future[ModelTaker] = asyncio.get_running_loop().create_future()

    @property
    def name(self) -> str:
        """The name of the model that is being downloaded; empty: none."""
        return self._pending.model.name if self._pending else ""

    def attach(self, taker: ModelTaker) -> None:
        """Hand what arrives to this service from now on."""
        if self._taker.done():
            self.detach()
        self._taker.set_result(taker)

    def detach(self) -> None:
        """The engine restarts: what arrives waits for the next service."""
        if self._taker.done():
            self._taker = asyncio.get_running_loop().create_future()

    def begin(self, model: ModelSettings, commit: str) -> None:
        """Download a model of the hub (of this `commit` if it is not empty) or convert a GGUF file. Another choice ends."""
        if self._pending is not None and self._pending.model == model:
            raise EngineError(
                "This model is being downloaded already." if model.name else "This model is being converted already."
            )
        self.cancel()
        self._pending = _Pending(model)
        self._publish(self._pending, _choice(model, _stage_of(model)))
        task = asyncio.get_running_loop().create_task(self._run(self._pending, commit))
        self._tasks.add(task)  # asyncio itself keeps a weak reference only
        task.add_done_callback(self._tasks.discard)

    def cancel(self) -> None:
        """Stop the download under way, if there is one. What has arrived is kept."""
        if (pending := self._pending) is not None:
            self._settle(pending, _choice(pending.model, "ended"))

    def dismiss(self, model: ModelSettings) -> None:
        """Another model was chosen in its place: stop the download, and forget an earlier failure."""
        self.cancel()
        if self._publisher.state.choice is not None:
            self._publisher.publish(_choice(model, "ended"))

    async def _run(self, pending: _Pending, commit: str) -> None:
        ended = _choice(pending.model, "ended")
        outcome = _choice(pending.model, "failed", title=UNEXPECTED, advice=REPORT)  # of errors that are no WaggleError
        report = partial(self._report, pending, asyncio.get_running_loop())
        try:
            await model_source.find_model(
                pending.model, self._publisher, pending.gate, pending.stopped, partial(self._examine, asyncio.get_running_loop()),
                limit=self._limit, commit=commit, report=report,
            )  # fmt: skip
            self._publish(pending, _choice(pending.model, "checking"))
            await self._take(pending)
            outcome = ended
        except Stopped:
            outcome = ended
        except WaggleError as error:
            outcome = _choice(pending.model, "failed", title=error.title, advice=error.advice)
        finally:
            self._settle(pending, outcome)

    async def _take(self, pending: _Pending) -> None:
        """Check the model, then train it. If the engine restarted during the check, its new service checks it once more."""
        while self._pending is pending:
            taker = await self._taker
            await taker.check(pending.model)
            if self._pending is pending and self._taker.done() and self._taker.result() is taker:
                taker.begin(pending.model)
                return

    def _examine(self, loop: asyncio.AbstractEventLoop, folder: Path) -> None:
        """In the downloading thread."""
        asyncio.run_coroutine_threadsafe(self._current_taker(), loop).result().examine(folder)

    async def _current_taker(self) -> ModelTaker:
        return await self._taker

    def _report(
        self, pending: _Pending, loop: asyncio.AbstractEventLoop, here: int, total: int, remaining: float | None
    ) -> None:  # fmt: skip
        """In the downloading thread."""
        model = pending.model
        event = replace(_choice(model, _stage_of(model)), done=here, total=total, seconds_left=remaining)
        loop.call_soon_threadsafe(self._publish, pending, event)

    def _publish(self, pending: _Pending, event: ModelChoice) -> None:
        if self._pending is pending:
            self._publisher.publish(event)

    def _settle(self, pending: _Pending, outcome: ModelChoice) -> None:
        """End a download, once."""
        pending.stop()
        if self._pending is pending:
            self._publish(pending, outcome)
            self._pending = None
