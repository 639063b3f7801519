"""`waggle swarm`: the commands about swarms under one name. Without a verb, it lists the swarms that this computer knows."""

import argparse
from functools import partial

from waggle.cli.shared.lazy_parser import Command, LazyParser
from waggle.cli.shared.options import add_home
from waggle.cli.shared.printing import add_json
from waggle.cli.swarms import listing

VERBS = {  # -> what `waggle swarm --help` says about it
    "list": "list the swarms that you know, with their hashes",
    "create": "create a swarm; prints its charter's hash",
    "preview": "say what a file of questions contains, and what is wrong with it",
    "join": "look at a swarm, then join it",
    "invite": "print an invite to your swarm",
    "leave": "take part in no swarm any more",
    "forget": "delete a swarm that you know",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)
    verbs = parser.add_subparsers(metavar="VERB", parser_class=LazyParser)
    for name, summary in VERBS.items():
        verbs.add_parser(name, help=summary, load=partial(_import_verb, name))


def run(arguments: argparse.Namespace) -> int:
    """List the swarms: no verb was chosen. Raises WaggleError."""
    return listing.run(arguments)


def _import_verb(name: str) -> Command:
    match name:
        case "list":
            return listing
        case "create":
            from waggle.cli.swarms import create

            return create
        case "preview":
            from waggle.cli.swarms import preview

            return preview
        case "join":
            from waggle.cli.swarms import join

            return join
        case "invite":
            from waggle.cli.swarms import invite

            return invite
        case "leave":
            from waggle.cli.swarms import leave

            return leave
        case "forget":
            from waggle.cli.swarms import forget

            return forget
    raise AssertionError(name)
