"""`waggle leave`: take part in no swarm any more. The model trains on this computer only, and keeps what it has learned."""

import argparse

from waggle.cli.preferences.changing import change_settings
from waggle.cli.preferences.current import current_settings
from waggle.cli.shared.engine import engine_runs
from waggle.cli.shared.options import add_home
from waggle.cli.shared.printing import add_json, say, say_json
from waggle.cli.swarms.obeying import swarm_commands
from waggle.core import paths
from waggle.protocol import commands
from waggle.protocol.events_swarms import KnownSwarms


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Leave; with an engine, wait until it has started again. Raises WaggleError."""
    home = paths.home_in(arguments.home)
    if current_settings(home).swarm.solo:
        return say_json({"solo": True}) if arguments.json else say("This computer trains alone already.")
    with swarm_commands(home) as obey:
        (known,) = (event for event in obey(commands.ListSwarms(id=commands.new_id())) if isinstance(event, KnownSwarms))
    present = next((each for each in known.swarms if each.active), None)
    runs = engine_runs(home)
    change_settings(home, {"swarm.solo": True}, runs=runs)
    if arguments.json:
        return say_json({"solo": True, "swarm": present and present.name, "charter": present and present.charter})
    name = present.name if present is not None else "the swarm"
    back = f' `waggle join "{name}"` leads back.' if present is not None and present.shipped else ""
    if present is not None and not present.shipped:
        back = f" `waggle join {present.charter}` leads back."
    return say(f"{'You have left' if runs else 'The next engine leaves'} {name}: it trains on this computer only.{back}")
