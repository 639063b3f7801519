"""`waggle log`: print what was logged, oldest first."""

import argparse

from waggle.cli.shared.options import add_home
from waggle.cli.shared.printing import add_json, say, say_json
from waggle.core import log, paths


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)
    parser.add_argument("word", nargs="?", help="only lines that contain it")
    parser.add_argument("--level", choices=log.LEVELS, default="INFO", help="the lowest level to print (default: INFO)")


def run(arguments: argparse.Namespace) -> int:
    """Print the lines. Returns 0."""
    lines = log.lines(paths.home_in(arguments.home).logs, level=arguments.level, word=arguments.word or "")
    return say_json({"lines": list(lines)}) if arguments.json else say(*lines)
