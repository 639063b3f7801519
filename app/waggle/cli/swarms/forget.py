"""`waggle swarm forget`: delete a swarm that this computer knows, with its charter, key and questions."""

import argparse

from waggle.cli.shared.confirming import REFUSED, add_yes, is_confirmed
from waggle.cli.shared.options import add_home, text
from waggle.cli.shared.printing import say
from waggle.cli.swarms.obeying import swarm_commands
from waggle.core import paths
from waggle.core.errors import SwarmError
from waggle.protocol import commands
from waggle.protocol.events_swarms import KnownSwarms


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_yes(parser)
    parser.add_argument("charter", type=text, metavar="HASH", help="as `waggle swarms` lists it")


def run(arguments: argparse.Namespace) -> int:
    """Forget it, once that is confirmed. Raises WaggleError."""
    with swarm_commands(paths.home_in(arguments.home)) as obey:
        (known,) = (event for event in obey(commands.ListSwarms(id=commands.new_id())) if isinstance(event, KnownSwarms))
        names = {each.charter: each.name for each in known.swarms} | {each.charter: each.name for each in known.ended}
        if arguments.charter not in names:
            raise SwarmError("This swarm is not known here.", "`waggle swarms` lists those that are, with their hashes.")
        name = names[arguments.charter]
        if not is_confirmed(f"Forget {name}? Without an invite, you cannot join it again.", yes=arguments.yes):
            return REFUSED
        obey(commands.ForgetSwarm(id=commands.new_id(), charter=arguments.charter))
    return say(f"{name} is forgotten.")
