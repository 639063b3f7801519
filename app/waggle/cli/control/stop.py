"""`waggle stop`: end a running engine."""

import argparse

from waggle.cli.shared.engine import ask
from waggle.cli.shared.options import add_home
from waggle.cli.shared.printing import say
from waggle.core import paths
from waggle.protocol import commands


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)


def run(arguments: argparse.Namespace) -> int:
    """Stop the engine. Raises EngineError if none runs."""
    ask(paths.home_in(arguments.home), commands.Stop(id=commands.new_id()))
    return say("Stopping. Everything is kept.")
