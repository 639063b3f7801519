"""`waggle invite`: print an invite to the swarm of this computer."""

import argparse
import sys

from waggle.cli.shared.engine import engine_runs
from waggle.cli.shared.options import add_home
from waggle.cli.shared.printing import add_json, say, say_json
from waggle.cli.swarms.obeying import swarm_commands
from waggle.core import paths
from waggle.core.errors import EngineError
from waggle.protocol import commands
from waggle.protocol.events_swarms import InviteWritten

LATER = "Try again in a moment."  # the advice of a service that waits for the node


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the link; on stderr, from where it works. Without an engine, it names other members. Raises WaggleError."""
    home = paths.home_in(arguments.home)
    runs = engine_runs(home)
    try:
        with swarm_commands(home) as obey:
            answers = obey(commands.WriteInvite(id=commands.new_id()))
    except EngineError as error:
        if runs:
            raise
        advice = "Start one with `waggle engine`, then ask again." if error.advice == LATER else error.advice
        raise EngineError(f"No engine is running. {error.title}", advice) from error
    (invite,) = (event for event in answers if isinstance(event, InviteWritten))
    if arguments.json:
        return say_json({"link": invite.link, "charter": invite.charter, "reach": invite.reach})
    sys.stderr.write(f"{invite.reach}\n")
    return say(invite.link)
