"""The engine's state machine: which phase it is in, and what a command does to it.

    preparing -> contributing <-> finishing -> paused -> contributing ... -> stopped

Lives on the engine's loop; the policy thread meets it at the gate only.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import assert_never

from waggle.engine.gate import Gate
from waggle.engine.history import History
from waggle.engine.swarms import Swarms
from waggle.engine.teller import Teller
from waggle.errors import EngineError
from waggle.protocol import commands, events
from waggle.protocol.state import AnyEvent, Snapshot
from waggle.swarm.trust import Choice

PAUSE_SECONDS = 30.0  # one decode step of a large model on a slow machine, with room


def _no_swarm_yet(_peer: str, _choice: Choice) -> None:
    raise EngineError("The swarm is not joined yet.", "Try again in a moment.")


class Lifecycle:
    """Obeys commands."""

    def __init__(self, teller: Teller, history: History) -> None:
        self._loop = asyncio.get_running_loop()
        self._teller = teller
        self._history = history
        self._reached = asyncio.Event()
        self._resume_timer: asyncio.TimerHandle | None = None
        self._until: float | None = None
        self._after_round = False
        self._deciding = threading.Lock()  # a resume and the end of a round may come at once
        self._began = False
        self.stopped = asyncio.Event()
        self.gate = Gate(self._gate_waits)
        self.again = ""  # why the engine prepares anew after this stop; empty: it ends
        self.swarms: Swarms | None = None
        self.choose_peer: Callable[[str, Choice], None] = _no_swarm_yet

    def round_ended(self) -> None:
        """Told by the policy thread after each round: a pause that was to come after it comes now."""
        with self._deciding:
            if self._after_round:
                self._after_round = False
                self.gate.close()

    def begin(self) -> None:
        """Everything is ready; a pause that was asked for meanwhile holds."""
        self._began = True
        if self._teller.state.phase == "preparing":
            self._tell_phase("contributing")

    def stop(self) -> None:
        """End after the step in progress."""
        self.stopped.set()
        self._release()
        self.gate.stop()

    def start_again(self, reason: str) -> None:
        """End after the step in progress, for something else to begin in the same process."""
        self.again = reason
        self.stop()

    async def obey(self, command: commands.AnyCommand) -> tuple[AnyEvent, ...]:
        """Do it, then answer: any events that are meant for the asker alone, and CommandDone last."""
        answers: list[AnyEvent] = []
        match command:
            case commands.Pause():
                await self._pause(command)
            case commands.Resume():
                self._resume()
            case commands.Stop():
                self.stop()
            case commands.ChoosePeer():
                self.choose_peer(command.peer, command.choice)
            case (
                commands.ListSwarms() | commands.CreateSwarm() | commands.ReadInvite() | commands.ChooseSwarm()
                | commands.ForgetSwarm() | commands.WriteInvite()
            ):  # fmt: skip
                answers += await self._swarms().obey(command)
            case commands.Status():
                answers.append(Snapshot(state=self._teller.state))
            case commands.QueryHistory():
                answers.append(self._history.told())
            case _:
                assert_never(command)
        return tuple(self._teller.stamp(event) for event in (*answers, events.CommandDone(id=command.id)))

    def _swarms(self) -> Swarms:
        if self.swarms is None:
            raise EngineError("The engine is still starting.", "Try again in a moment.")
        return self.swarms

    async def _pause(self, command: commands.Pause) -> None:
        self._set_timer(command.until)
        preparing = self._teller.state.phase == "preparing"
        if self._teller.state.phase == "paused":
            self._tell_phase("paused")  # perhaps with another end
            return
        if command.after_round and not preparing:
            self._after_round = True
            self._tell_phase("finishing")
            return
        self.gate.close()
        if preparing:
            return  # the gate is met by a download, or when loading is done; nothing trains until then
        try:
            async with asyncio.timeout(PAUSE_SECONDS):
                await self._reached.wait()
        except TimeoutError as error:
            raise EngineError("The model is still in the middle of a step.", "It pauses as soon as that step ends.") from error

    def _resume(self) -> None:
        self._set_timer(None)
        with self._deciding:
            self._after_round = False
            self.gate.open()
        self._release()
        if self._teller.state.phase in ("paused", "finishing"):
            self._tell_phase("contributing" if self._began else "preparing")

    def _release(self) -> None:
        """Whoever waits for a pause that will not come any more goes on."""
        self._reached.set()
        self._reached = asyncio.Event()

    def _gate_waits(self) -> None:
        self._loop.call_soon_threadsafe(self._at_gate)

    def _at_gate(self) -> None:
        """The policy thread waits between two steps."""
        if self.stopped.is_set() or not self.gate.closed:  # resumed or stopped before this was heard
            return
        self._reached.set()
        self._tell_phase("paused")

    def _set_timer(self, until: float | None) -> None:
        if self._resume_timer is not None:
            self._resume_timer.cancel()
        self._until = until
        delay = None if until is None else max(0.0, until - self._teller.now())
        self._resume_timer = None if delay is None else self._loop.call_later(delay, self._resume)

    def _tell_phase(self, phase: events.Phase) -> None:
        until = self._until if phase in ("paused", "finishing") else None
        self._teller.tell(events.PhaseChanged(phase=phase, round=self._teller.state.round, until=until))
