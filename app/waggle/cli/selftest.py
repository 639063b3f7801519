"""`waggle selftest`: plays three rounds with the starter and without a network, and prints the result.

For the smoke tests of installers, and for people who want to know whether this computer can take part.
"""

import argparse
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

from waggle import node
from waggle.cli.shared.options import add_home, add_settings
from waggle.core import settings
from waggle.core.errors import EngineError
from waggle.core.message import Message
from waggle.protocol import events

ROUNDS = 3


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
    values = {"swarm.solo": True, **node.AT_ANY_TIME, **dict(map(settings.assignment, chosen))}
    played = 0
    with node.run(home, values) as running:
        for event in running:
            _say(event)
            played += isinstance(event, events.RoundCompleted)
            if played == ROUNDS:
                return
            if (obstacle := running.obstacle) is not None:
                raise EngineError(obstacle.says, obstacle.detail)
    raise EngineError(Message("The engine ended after %1 rounds.", played), "Install Waggle again, or send us what stands above.")


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
