"""`waggle swarms`: the swarms that this computer knows, with their hashes."""

import argparse

from waggle.cli.shared.engine import engine_runs
from waggle.cli.shared.options import add_home
from waggle.cli.shared.printing import add_json, say, say_json
from waggle.cli.swarms.described import listed
from waggle.cli.swarms.obeying import swarm_commands
from waggle.core import paths
from waggle.protocol import commands
from waggle.protocol.events_swarms import KnownSwarms


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the list. Raises WaggleError."""
    home = paths.home_in(arguments.home)
    runs = engine_runs(home)
    with swarm_commands(home) as obey:
        (known,) = (event for event in obey(commands.ListSwarms(id=commands.new_id())) if isinstance(event, KnownSwarms))
    if arguments.json:
        return say_json({"swarms": known.swarms, "ended": known.ended, "fixed": known.fixed})
    ended = [f"{swarm.name}\n  {swarm.why}\n  {swarm.charter}" for swarm in known.ended]
    return say("\n\n".join([*(listed(swarm, engine=runs) for swarm in known.swarms), *ended]))
