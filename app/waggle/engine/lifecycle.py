"""The engine's state machine: which phase it is in, and what a command, a rule or the clock does to it.

    preparing -> contributing <-> finishing -> paused or waiting -> contributing ... -> stopped

What to do is decided in one place (`consider`), from the rules, what the computer tells, and what the person asked for.
Lives on the engine's loop; the policy thread meets it at the gate only.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import assert_never

from msgspec.structs import replace

from waggle.core.errors import EngineError, VerifierError, WaggleError
from waggle.core.settings import ScheduleSettings
from waggle.engine.control.command_queue import UndoStep
from waggle.engine.control.server import PAUSE_SECONDS
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.engine.storage.pause_request import PauseRequest
from waggle.protocol import commands, events
from waggle.protocol.schedule import Decision, Readings, Tick, Wishes, decide, in_step
from waggle.protocol.state import AnyEvent

log = logging.getLogger(__name__)

Moving = commands.Pause | commands.Resume | commands.Stop
ANYWAY_SECONDS = 3600.0  # "contribute anyway" holds so long


def _ends(error: WaggleError) -> str:
    """Of what hinders."""
    if isinstance(error, VerifierError):
        return f"It is tried again by itself. {error.advice}".strip()
    return f"{error.advice} It goes on by itself then."


class Lifecycle:
    """Obeys commands, rules and the clock. What was `asked` of the one before holds until it ends as it was said to."""

    def __init__(
        self, publisher: EventPublisher, rules: ScheduleSettings | None = None, request: PauseRequest | None = None
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._publisher = publisher
        self._rules = rules or ScheduleSettings()
        self._readings = Readings()
        self._request = request or PauseRequest()
        self._wishes = self._request.wishes
        self._decision = Decision(standing="contributing")
        self._hindrance: Tick | None = None
        self._reached = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._round_ended = False
        self._deciding = threading.Lock()  # a resume and the end of a round may come at once
        self._began = False
        self.stopped = asyncio.Event()
        self.gate = PauseGate(self._gate_waits)
        self.restart_reason = ""  # why the engine prepares anew after this stop; empty: it ends
        self.back: list[UndoStep] = []  # out of what the engine starts again for, the newest last
        if self._wishes.paused:
            self.consider(self._readings)

    def round_ended(self) -> None:
        """Told by the policy thread after each round: a pause that was to come after it comes now."""
        with self._deciding:
            if self._wishes.after_round:
                self._round_ended = True
                self.gate.close()

    def begin(self) -> None:
        """Everything is ready; a pause that was asked for meanwhile holds."""
        self._began = True
        if self._publisher.state.phase == "preparing" and not self.gate.closed:
            self._tell_phase(self._moving)

    def stop(self) -> None:
        """End after the step in progress."""
        self.stopped.set()
        self._set_timer(self._publisher.now())
        self._release()
        self.gate.stop()

    def start_again(
        self, reason: str, back: Callable[[], object] | None = None, innocent: tuple[type[WaggleError], ...] = ()
    ) -> None:
        """End after the step in progress, for something else to begin; `back` is called where that cannot begin, unless it is
        `innocent` of why."""
        log.info("restart: %s", reason)
        self.restart_reason = reason
        if back is not None:
            self.back.append(UndoStep(back, innocent))
        self.stop()

    @property
    def until_away(self) -> bool:
        """Whether a pause waits until the person is away."""
        return self._wishes.until_away

    def follow(self, rules: ScheduleSettings) -> tuple[str, ...]:
        """These rules hold from now on: all of them at once."""
        self._rules = rules
        self.consider(self._readings)
        return ()

    def hindered(self, error: WaggleError | None) -> None:
        """Told by the policy thread: nothing can go on for this reason, or it is over (None)."""
        self._loop.call_soon_threadsafe(self._hinder, error)

    def _hinder(self, error: WaggleError | None) -> None:
        if error is None and self._hindrance is None:
            return
        self._hindrance = Tick(rule="disk", passes=False, says=error.title, ends=_ends(error)) if error else None
        self.consider(self._readings)
        if error and not self.stopped.is_set():
            self._reached.set()  # nothing moves while it is so
            self._tell_held()

    def consider(self, readings: Readings) -> None:
        """Decide anew, knowing this of the computer, and see that it happens."""
        self._readings = readings
        with self._deciding:
            if self._round_ended and self._wishes.after_round:
                self._wishes, self._round_ended = replace(self._wishes, after_round=False, anyway_until=None), False
            now = self._publisher.now()
            self._wishes = in_step(self._wishes, now)
            decision = decide(self._rules, readings, self._wishes, now, before=self._decision.standing, hindrance=self._hindrance)
            goes_on = decision.standing == "contributing"
            if goes_on:
                self.gate.open()
            else:
                self.gate.close()
        if decision != self._publisher.state.decision:
            log.debug("rules: %s %s", decision.standing, decision.reason)
            self._publisher.tell(events.RulesChecked(decision=decision))
        self._decision = decision
        if decision.standing != "paused":
            asked_at = None if decision.anyway_until is None else self._wishes.asked_at
            holding = self._wishes if self._wishes.after_round else Wishes(asked_at=asked_at)
            self._wishes = replace(holding, anyway_until=decision.anyway_until)
        self._request.keep(self._wishes)
        self._set_timer(now)
        if goes_on:
            self._go_on()
        elif self._publisher.state.phase in ("paused", "waiting"):
            self._tell_held()

    async def obey(self, command: Moving) -> tuple[AnyEvent, ...]:
        """Do it, then answer CommandDone; raises EngineError where it cannot be done."""
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
        with self._deciding:
            self._wishes = Wishes(
                paused=True, until=command.until, until_away=command.until_away, after_round=later, anyway_until=anyway,
                asked_at=self._publisher.now(),
            )  # fmt: skip
            self._round_ended = self._round_ended and later
        if later:
            self._request.keep(self._wishes)
            self._tell_phase("finishing")
            return
        self.consider(self._readings)
        if self.stopped.is_set() or phase not in ("contributing", "finishing") or self._decision.standing != "paused":
            return  # it moves no more; a download, or the end of loading, meets the gate later; the moment is past
        try:
            async with asyncio.timeout(PAUSE_SECONDS):
                await self._reached.wait()
        except TimeoutError as error:
            log.debug("no step ended within %.0f s of a pause", PAUSE_SECONDS)
            raise EngineError("The model is still in the middle of a step.", "It pauses as soon as that step ends.") from error

    def _resume(self, anyway_until: float | None) -> None:
        """End a pause; where it is the rules that hold back, they wait themselves, and as long as they were told to."""
        now = self._publisher.now()
        with self._deciding:
            held_back = self._decision.standing == "waiting" and not self._hindrance
            anyway_until = anyway_until or (now + ANYWAY_SECONDS if held_back else self._wishes.anyway_until)
            self._wishes, self._round_ended = Wishes(anyway_until=anyway_until, asked_at=now), False
        self.consider(self._readings)

    def _go_on(self) -> None:
        self._release()
        phase = self._publisher.state.phase
        if phase in ("paused", "waiting") or (phase == "finishing" and not self._wishes.after_round):
            self._tell_phase(self._moving if self._began else "preparing")

    @property
    def _moving(self) -> events.Phase:
        return "finishing" if self._wishes.after_round else "contributing"

    def _release(self) -> None:
        """Let those continue that wait for a pause that has been cancelled."""
        self._reached.set()
        self._reached = asyncio.Event()

    def _gate_waits(self) -> None:
        self._loop.call_soon_threadsafe(self._at_gate)

    def _at_gate(self) -> None:
        """The policy thread waits between two steps."""
        if self._round_ended:
            self.consider(self._readings)
        if self.stopped.is_set() or not self.gate.closed:  # resumed or stopped before this was heard
            return
        self._reached.set()
        self._tell_held()

    def _tell_held(self) -> None:
        """Nothing moves: say why, once."""
        phase: events.Phase = "paused" if self._decision.standing == "paused" else "waiting"
        if (self._publisher.state.phase, self._publisher.state.until) != (phase, self._until(phase)):
            self._tell_phase(phase)

    def _set_timer(self, now: float) -> None:
        """Decide again when a pause ends; a clock that is set meanwhile is met by the next look at the computer."""
        if self._timer is not None:
            self._timer.cancel()
        if self.stopped.is_set():  # the next one decides
            return
        ends = None if self._wishes.after_round else self._wishes.until
        moments = [at for at in (ends, self._wishes.anyway_until) if at is not None]
        self._timer = self._loop.call_later(max(0.01, min(moments) - now), self._time_is_up) if moments else None

    def _time_is_up(self) -> None:
        self.consider(self._readings)

    def _tell_phase(self, phase: events.Phase) -> None:
        self._publisher.tell(events.PhaseChanged(phase=phase, round=self._publisher.state.round, until=self._until(phase)))

    def _until(self, phase: events.Phase) -> float | None:
        return self._wishes.until if phase in ("paused", "finishing") else None
