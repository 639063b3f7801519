"""The engine's state machine: which phase it is in, and what a command, a rule or the clock does to it.

    preparing -> contributing <-> finishing -> paused or waiting -> contributing ... -> stopped

One method (`decide_again`) decides what to do, from the rules, the sensors, and what the person asked for. All of it runs on the
engine's loop, except what a docstring gives to the policy thread, which otherwise meets it at the gate only.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import assert_never

from msgspec.structs import replace

from waggle.core.errors import EngineError, VerifierError, WaggleError
from waggle.core.message import Message, in_turn
from waggle.core.settings import ScheduleSettings
from waggle.engine.control.server import PAUSE_SECONDS
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.engine.runtime.undo_log import UndoStep
from waggle.engine.storage.pause_request import PauseRequest
from waggle.protocol import commands, events
from waggle.protocol.schedule import Readings, ScheduleDecision, Tick, Wishes, decide, in_step
from waggle.protocol.state import AnyEvent

log = logging.getLogger(__name__)

LifecycleCommand = commands.Pause | commands.Resume | commands.Stop
ANYWAY_SECONDS = 3600.0  # of "contribute anyway" without a time


def _ends_when(error: WaggleError) -> Message:
    """What ends a blocker, in words."""
    if isinstance(error, VerifierError):
        return in_turn(Message("It is tried again by itself."), error.advice)
    return in_turn(error.advice, Message("Then it continues by itself."))


class Lifecycle:
    """Obeys commands, rules and the clock. The `request` carries a pause over from one lifecycle to the next."""

    def __init__(
        self, publisher: EventPublisher, rules: ScheduleSettings | None = None, request: PauseRequest | None = None
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._publisher = publisher
        self._rules = rules or ScheduleSettings()
        self._readings = Readings()
        self._request = request or PauseRequest()
        self._wishes = self._request.wishes
        self._decision = ScheduleDecision(standing="contributing")
        self._blocker: Tick | None = None
        self._halted = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._round_ended = False
        self._deciding = threading.Lock()  # a resume on the loop and the end of a round in the policy thread may coincide
        self._is_ready = False
        self.stopped = asyncio.Event()
        self.gate = PauseGate(self._gate_waits)
        self.restart_reason = ""  # why the engine restarts after this stop; empty: it ends
        self.undo_steps: list[UndoStep] = []  # of the choices for which the engine restarts, oldest first
        if self._wishes.paused:
            self.decide_again(self._readings)

    def handle_round_end(self) -> None:
        """Called in the policy thread after each round: begin the pause that waited for it."""
        with self._deciding:
            if self._wishes.after_round:
                self._round_ended = True
                self.gate.close()

    def start_contributing(self) -> None:
        """Leave the phase "preparing", now that everything is ready. A pause that began meanwhile stays."""
        self._is_ready = True
        if self._publisher.state.phase == "preparing" and not self.gate.is_closed:
            self._publish_phase(self._active_phase)

    def stop(self) -> None:
        """End after the step in progress."""
        self.stopped.set()
        self._set_timer(self._publisher.now())
        self._release_waiting()
        self.gate.stop()

    def restart(
        self, reason: str, undo: Callable[[], object] | None = None, unrelated: tuple[type[WaggleError], ...] = ()
    ) -> None:
        """End after the step in progress, and restart with another choice.

        `undo` takes the choice back if the engine cannot start with it, unless the failure is one of the `unrelated`.
        """
        log.info("restart: %s", reason)
        self.restart_reason = reason
        if undo is not None:
            self.undo_steps.append(UndoStep(undo, unrelated))
        self.stop()

    @property
    def until_away(self) -> bool:
        """Whether a pause waits until the person is away."""
        return self._wishes.until_away

    def apply_rules(self, rules: ScheduleSettings) -> tuple[str, ...]:
        """Replace the rules. All of them apply at once, so there is no name to return."""
        self._rules = rules
        self.decide_again(self._readings)
        return ()

    def report_blocker(self, error: WaggleError | None) -> None:
        """Called in any thread: this error stops all contribution; None: it is over."""
        self._loop.call_soon_threadsafe(self._set_blocker, error)

    def _set_blocker(self, error: WaggleError | None) -> None:
        if error is None and self._blocker is None:
            return
        self._blocker = Tick(rule="disk", passes=False, says=error.title, ends=_ends_when(error)) if error else None
        self.decide_again(self._readings)
        if error and not self.stopped.is_set():
            self._halted.set()  # the policy thread already waits
            self._publish_halt()

    def decide_again(self, readings: Readings) -> None:
        """Decide what to do with these readings, and do it."""
        self._readings = readings
        with self._deciding:
            if self._round_ended and self._wishes.after_round:
                self._wishes, self._round_ended = replace(self._wishes, after_round=False, anyway_until=None), False
            now = self._publisher.now()
            if hasattr(time, "tzset"):
                time.tzset()  # a process keeps the time zone of its start; a laptop travels
            self._wishes = in_step(self._wishes, now)
            decision = decide(self._rules, readings, self._wishes, now, before=self._decision.standing, blocker=self._blocker)
            contributes = decision.standing == "contributing"
            if contributes:
                self.gate.open()
            else:
                self.gate.close()
        if decision != self._publisher.state.decision:
            log.debug("rules: %s %s", decision.standing, decision.reason)
            self._publisher.publish(events.RulesChecked(decision=decision))
        self._decision = decision
        if decision.standing != "paused":
            asked_at = None if decision.anyway_until is None else self._wishes.asked_at
            holding = self._wishes if self._wishes.after_round else Wishes(asked_at=asked_at)
            self._wishes = replace(holding, anyway_until=decision.anyway_until)
        self._request.save(self._wishes)
        self._set_timer(now)
        if contributes:
            self._continue()
        elif self._publisher.state.phase in ("paused", "waiting"):
            self._publish_halt()

    async def obey(self, command: LifecycleCommand) -> tuple[AnyEvent, ...]:
        """Obey, then answer CommandDone. Raises EngineError for what cannot be done."""
        match command:
            case commands.Pause():
                await self._pause(command)
            case commands.Resume():
                self._resume(command.anyway_until)
            case commands.Stop():
                self.stop()
            case _:
                assert_never(command)
        return (self._publisher.stamp(events.CommandDone(id=command.id)),)

    async def _pause(self, command: commands.Pause) -> None:
        if command.until_away and self._readings.idle_seconds is None:
            raise EngineError("This computer does not tell whether you are using it.", "Pause until a moment instead.")
        phase = self._publisher.state.phase
        later = command.after_round and phase in ("contributing", "finishing")
        anyway = self._wishes.anyway_until if later else None
        now = self._publisher.now()
        until = command.until if command.seconds is None else now + command.seconds
        with self._deciding:
            self._wishes = Wishes(
                paused=True, until=until, until_away=command.until_away, after_round=later, anyway_until=anyway, asked_at=now
            )
            self._round_ended = self._round_ended and later
        if later:
            self._request.save(self._wishes)
            self._publish_phase("finishing")
            return
        self.decide_again(self._readings)
        if self.stopped.is_set() or phase not in ("contributing", "finishing") or self._decision.standing != "paused":
            return  # it has stopped; or startup meets the gate later; or the pause has ended already
        try:
            async with asyncio.timeout(PAUSE_SECONDS):
                await self._halted.wait()
        except TimeoutError as error:
            log.debug("no step ended within %.0f s of a pause", PAUSE_SECONDS)
            raise EngineError("The model is still in the middle of a step.", "It pauses as soon as that step ends.") from error

    def _resume(self, anyway_until: float | None) -> None:
        """End a pause. If the rules hold back, suspend them until `anyway_until`, or for an hour."""
        now = self._publisher.now()
        with self._deciding:
            held_back = self._decision.standing == "waiting" and not self._blocker
            anyway_until = anyway_until or (now + ANYWAY_SECONDS if held_back else self._wishes.anyway_until)
            self._wishes, self._round_ended = Wishes(anyway_until=anyway_until, asked_at=now), False
        self.decide_again(self._readings)

    def _continue(self) -> None:
        self._release_waiting()
        phase = self._publisher.state.phase
        if phase in ("paused", "waiting") or (phase == "finishing" and not self._wishes.after_round):
            self._publish_phase(self._active_phase if self._is_ready else "preparing")

    @property
    def _active_phase(self) -> events.Phase:
        return "finishing" if self._wishes.after_round else "contributing"

    def _release_waiting(self) -> None:
        """Wake the commands that wait for a pause: it was cancelled."""
        self._halted.set()
        self._halted = asyncio.Event()

    def _gate_waits(self) -> None:
        self._loop.call_soon_threadsafe(self._at_gate)

    def _at_gate(self) -> None:
        """The policy thread waits at the gate: publish that, and answer the pause."""
        if self._round_ended:
            self.decide_again(self._readings)
        if self.stopped.is_set() or not self.gate.is_closed:  # resumed or stopped before the loop ran this
            return
        self._halted.set()
        self._publish_halt()

    def _publish_halt(self) -> None:
        """Publish once that nothing moves, and why."""
        phase: events.Phase = "paused" if self._decision.standing == "paused" else "waiting"
        if (self._publisher.state.phase, self._publisher.state.until) != (phase, self._until(phase)):
            self._publish_phase(phase)

    def _set_timer(self, now: float) -> None:
        """Decide again when a pause ends. If the clock is set meanwhile, the next sensor readings correct this."""
        if self._timer is not None:
            self._timer.cancel()
        if self.stopped.is_set():  # the next lifecycle decides
            return
        ends = None if self._wishes.after_round else self._wishes.until
        moments = [at for at in (ends, self._wishes.anyway_until) if at is not None]
        self._timer = self._loop.call_later(max(0.01, min(moments) - now), self._time_is_up) if moments else None

    def _time_is_up(self) -> None:
        self.decide_again(self._readings)

    def _publish_phase(self, phase: events.Phase) -> None:
        self._publisher.publish(events.PhaseChanged(phase=phase, round=self._publisher.state.round, until=self._until(phase)))

    def _until(self, phase: events.Phase) -> float | None:
        return self._wishes.until if phase in ("paused", "finishing") else None
