"""`waggle log`: print what was logged, oldest first."""

import argparse
import sys

from waggle.cli.shared.options import add_home
from waggle.core import log, paths


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    parser.add_argument("word", nargs="?", help="only lines that contain it")
    parser.add_argument("--level", choices=log.LEVELS, default="INFO", help="the lowest level to print (default: INFO)")


def run(arguments: argparse.Namespace) -> int:
    """Print the lines. Returns 0."""
    for line in log.lines(paths.home_in(arguments.home).logs, level=arguments.level, word=arguments.word or ""):
        sys.stdout.write(line + "\n")
    return 0
