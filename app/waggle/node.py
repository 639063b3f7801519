"""One node in Python: `run` starts the engine that the window and `waggle engine` start, and hands on what it says.

    import waggle.node

    with waggle.node.run("runs/first", {"swarm.solo": True} | waggle.node.AT_ANY_TIME, until_round=20) as node:
        for summary in node.rounds():
            print(summary.round, summary.reward)

The engine is a process of its own, as always. Nothing of a round is computed here; docs/research.md has examples.
"""

import logging
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from types import TracebackType

from waggle.core import paths
from waggle.core import settings as known_settings
from waggle.core.errors import EngineError, SettingsError
from waggle.core.message import Message
from waggle.core.settings import Value
from waggle.protocol import events, json_lines
from waggle.protocol.commands import AnyCommand
from waggle.protocol.state import HALTED_PHASES, AnyEvent, State, apply
from waggle.protocol.text.status_text import Sentence, sentence

# Settings by which no rule of the schedule holds a node back: not the battery, not a full screen, not the hours of the week.
AT_ANY_TIME: Mapping[str, Value] = {
    "when.idle_minutes": 0, "when.only_on_power": False, "when.week": (), "when.not_while": (), "when.not_full_screen": False,
    "when.not_metered": False, "when.below_celsius": 0, "when.kwh_a_day": 0.0,
}  # fmt: skip
log = logging.getLogger(__name__)


def run(
    home: str | os.PathLike[str], settings: Mapping[str, Value] | None = None, *, until_round: int | None = None
) -> "RunningNode":
    """Start a node that keeps everything in the folder `home`, and continues with what is there.

    `settings` are names `section.name` with values (None: the default), for this run only, as with `waggle engine --set`. The
    engine ends once its model has played `until_round` rounds in all, those of earlier runs included; None: it plays until it
    is closed. Raises SettingsError before anything starts.
    """
    if until_round is not None and until_round < 0:
        raise SettingsError(Message("until_round is %1.", until_round), "It is a number of rounds, 0 or more.")
    place = paths.Home(paths.expand_user(Path(home)).absolute())
    overrides = tuple(known_settings.override(key, value) for key, value in (settings or {}).items())
    if not place.root.is_file():  # if it is no folder, the engine says so
        known_settings.read(place.settings, overrides)
    options = [word for override in overrides for word in ("--set", override)]
    if until_round is not None:
        options += ["--until-round", str(until_round)]
    return RunningNode([*paths.module_command("waggle"), "engine", "--stdio", "--home", str(place.root), *options])


class RunningNode:
    """A node whose engine runs. Use it in one thread, in a `with` block or until `close`.

    Iterating yields every event of waggle.protocol.events, as it happens; `state` is folded from those that were yielded.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.state = State()
        self._is_closed = False
        self._engine = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    @property
    def obstacle(self) -> Sentence | None:
        """What holds the node back, such as a pause, a failure or a choice that a person has to make; None if nothing does."""
        is_held = self.state.phase in HALTED_PHASES or self.state.waits_for_choice
        return sentence(self.state) if is_held else None

    def __enter__(self) -> "RunningNode":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        with suppress(EngineError) if error is not None else nullcontext():
            self.close()

    def __iter__(self) -> Iterator[AnyEvent]:
        """Every event until the engine has ended. Raises EngineError if it fails, or if another engine has the folder."""
        assert self._engine.stdout is not None
        if self._is_closed:
            return
        for line in self._engine.stdout:
            event = json_lines.event(line)
            self.state = apply(self.state, event)
            if self.state.service:  # it has settings and rounds of its own
                self.close()
                raise EngineError(
                    "Another engine is running for this folder.", "Stop it with `waggle stop`, or use another folder."
                )
            yield event
        self.close()

    def rounds(self) -> Iterator[events.RoundSummary]:
        """The figures of each round once it is finished and saved, until the engine has ended.

        Warnings of the engine, and why it waits, are logged at WARNING meanwhile. Raises EngineError as iterating, and when the
        engine asks what only a person can answer, such as which model to train instead of one that is not there.
        """
        logged = None
        for event in self:
            if isinstance(event, events.RoundCompleted):
                yield event.summary
            elif isinstance(event, events.Warned):
                log.warning("%s %s", event.title, event.advice)
            obstacle = self.obstacle
            if obstacle is not None and self.state.waits_for_choice:
                self.close()
                raise EngineError(obstacle.says, obstacle.detail)
            if obstacle is not None and (logged is None or obstacle.says != logged.says):
                log.warning("%s %s", obstacle.says, obstacle.detail)
            logged = obstacle

    def send(self, command: AnyCommand) -> None:
        """Send a command of waggle.protocol.commands. Its answers are among the events. Raises EngineError after the end."""
        assert self._engine.stdin is not None
        try:
            self._engine.stdin.write(json_lines.line(command))
            self._engine.stdin.flush()
        except (OSError, ValueError) as error:  # ValueError: closed
            raise EngineError("The engine has ended.", "Start another one with `run`.") from error

    def close(self) -> None:
        """End the engine after the step in progress, and wait until it has saved. Raises EngineError if it has failed."""
        assert self._engine.stdin is not None
        assert self._engine.stdout is not None
        if self._is_closed:
            return
        self._is_closed = True
        with suppress(OSError):
            self._engine.stdin.close()
        for line in self._engine.stdout:
            self.state = apply(self.state, json_lines.event(line))
        self._engine.stdout.close()
        self._engine.wait()
        if (problem := self.state.problem) is not None:
            raise EngineError(problem.title, problem.advice)
        if self._engine.returncode:
            raise EngineError(
                Message("Training ended with code %1.", self._engine.returncode), "Its log may say why: `waggle log`."
            )
