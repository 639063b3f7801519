"""`waggle selftest`: plays three rounds with the starter and without a network, and prints the result.

For the smoke tests of installers, and for people who want to know whether this computer can take part.
"""

import argparse
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

from waggle.cli.shared.options import add_home, add_settings
from waggle.core import paths
from waggle.core.errors import EngineError
from waggle.protocol import events, json_lines
from waggle.protocol.commands import Stop
from waggle.protocol.state import State, apply
from waggle.protocol.text.status_text import Sentence, sentence

ROUNDS = 3
AT_ANY_TIME = (
    "when.idle_minutes=0", "when.only_on_power=false", "when.week=[]", "when.not_while=[]", "when.not_full_screen=false",
    "when.not_metered=false", "when.below_celsius=0", "when.kwh_a_day=0.0",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_settings(parser)


def run(arguments: argparse.Namespace) -> int:
    """Play three rounds, whatever the rules say. Raises EngineError if the engine fails or waits for something else.

    Its files are removed afterwards, unless `--home` names a folder for them.
    """
    with nullcontext(arguments.home) if arguments.home else tempfile.TemporaryDirectory(prefix="waggle-") as folder:
        _play(Path(folder), tuple(arguments.set))
    return 0


def _play(home: Path, chosen: tuple[str, ...]) -> None:
    options = [part for value in ("swarm.solo=true", *AT_ANY_TIME, *chosen) for part in ("--set", value)]
    command = [*paths.module_command("waggle"), "engine", "--stdio", "--home", str(home), *options]
    state, played = State(), 0
    obstacle: Sentence | None = None
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as engine:
        assert engine.stdin is not None
        assert engine.stdout is not None
        for line in engine.stdout:
            event = json_lines.event(line)
            _say(event)
            state = apply(state, event)
            if state.service:  # an engine that runs already, in its own swarm and by its own rules, would test nothing
                raise EngineError(
                    "Another engine is running for this folder.", "Stop it with `waggle ctl stop`, or use another --home."
                )
            played += isinstance(event, events.RoundCompleted)
            if obstacle is None and state.phase in ("paused", "waiting"):
                obstacle = sentence(state)
            if not engine.stdin.closed and (played == ROUNDS or obstacle):
                engine.stdin.write(json_lines.line(Stop(id="selftest")))
                engine.stdin.close()
    if obstacle and played < ROUNDS:
        raise EngineError(obstacle.says, obstacle.detail)
    if engine.returncode or played < ROUNDS:
        title = f"The engine ended with code {engine.returncode} after {played} rounds."
        raise EngineError(title, "Install Waggle again, or send us what stands above.")


def _say(event: object) -> None:
    match event:
        case events.Ready():
            text = f"{event.backend} on {event.device} ({event.device_reason}), {event.model}, {event.parameters:,} parameters"
        case events.RoundCompleted(summary=summary):
            text = f"round {summary.round}: reward {summary.reward:.3f}, {summary.tokens} tokens in {summary.seconds:.1f} s"
        case events.EngineFailed():
            text = f"{event.title} {event.advice}\n{event.detail}"
        case _:
            return
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
