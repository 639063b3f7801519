"""`waggle sent`: the last messages that left this computer, word for word."""

import argparse
import time

from waggle.cli.shared.engine import ask
from waggle.cli.shared.options import add_home
from waggle.cli.shared.printing import add_json, say, say_json
from waggle.core import paths
from waggle.core.message import plain
from waggle.protocol import commands
from waggle.protocol.events_outbox import SentMessage, SentMessages


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print them, newest first. Raises EngineError if no engine runs: they are stored nowhere."""
    answers = ask(paths.home_in(arguments.home), commands.QuerySent(id=commands.new_id()))
    (sent,) = (answer for answer in answers if isinstance(answer, SentMessages))
    if arguments.json:
        return say_json(sent.messages)
    return say("\n\n".join(map(_described, sent.messages)) or "Nothing has left this computer since Waggle started.")


def _described(message: SentMessage) -> str:
    at = time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(message.at))
    yours = ", with an answer of yours" if message.yours else ""
    lines = [f"  {plain(line)}" for line in message.text.splitlines()]
    return "\n".join([f"{at}  {message.kind} to {message.to or 'all who ask'}, {message.size} bytes{yours}", *lines])
