"""`waggle stop`: end a running engine."""

import argparse

from waggle.cli.shared.engine import ask
from waggle.cli.shared.options import add_home
from waggle.cli.shared.printing import add_json, say, say_json
from waggle.core import paths
from waggle.protocol import commands


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Stop the engine. Raises EngineError if none runs."""
    ask(paths.home_in(arguments.home), commands.Stop(id=commands.new_id()))
    return say_json({"stopping": True}) if arguments.json else say("Stopping. Everything is kept.")
