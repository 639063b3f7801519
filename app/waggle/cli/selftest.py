"""`waggle selftest`: plays three rounds with the starter and without a network, and prints the result.

For the smoke tests of installers, and for people who want to know whether this computer can take part.
"""

import argparse
import tempfile
from contextlib import nullcontext
from pathlib import Path

from waggle import node
from waggle.cli.shared.options import add_home, add_settings
from waggle.cli.shared.printing import add_stdio, say_for
from waggle.core import settings
from waggle.core.errors import EngineError
from waggle.core.message import Figure, Message
from waggle.core.text.round_number import round_number
from waggle.protocol import events

ROUNDS = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_settings(parser)
    add_stdio(parser)


def run(arguments: argparse.Namespace) -> int:
    """Play three rounds, whatever the rules say. Raises EngineError if the engine fails or waits for something else.

    Its files are removed afterwards, unless `--home` names a folder for them.
    """
    with nullcontext(arguments.home) if arguments.home else tempfile.TemporaryDirectory(prefix="waggle-") as folder:
        _play(Path(folder), tuple(arguments.set), for_window=arguments.stdio)
    return 0


def _play(home: Path, chosen: tuple[str, ...], *, for_window: bool) -> None:
    values = {"swarm.solo": True, **node.AT_ANY_TIME, **dict(map(settings.assignment, chosen))}
    played = 0
    with node.run(home, values) as running:
        for event in running:
            say_for(_lines(event), window=for_window)
            played += isinstance(event, events.RoundCompleted)
            if played == ROUNDS:
                return
            if (obstacle := running.obstacle) is not None:
                raise EngineError(obstacle.says, obstacle.detail)
    raise EngineError(Message("The engine ended after %1 rounds.", played), "Install Waggle again, or send us what stands above.")


def _lines(event: object) -> tuple[str, ...]:
    match event:
        case events.Ready():
            where = event.backend, event.device, event.device_reason
            return (Message("%1 on %2 (%3), %4, %5 parameters", *where, event.model, Figure(event.parameters)),)
        case events.RoundCompleted(summary=summary):
            values = round_number(summary.round), Figure(summary.reward, 3), Figure(summary.tokens), Figure(summary.seconds, 1)
            return (Message("Round %1: reward %2, %3 tokens in %4 s", *values),)
        case events.EngineFailed():
            return event.title, event.advice, event.detail
        case _:
            return ()
