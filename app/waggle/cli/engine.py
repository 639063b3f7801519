"""`waggle engine`: contribute without a window."""

import argparse

from waggle.cli.shared.options import add_home, add_settings, add_verbose, start_log


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_settings(parser)
    add_verbose(parser)
    parser.add_argument("--stdio", action="store_true", help="take commands from stdin, and exit when it ends")


def run(arguments: argparse.Namespace) -> int:
    """Run until stopped. Returns the exit code."""
    from waggle.engine import main

    start_log(arguments)
    return main.run(arguments)
