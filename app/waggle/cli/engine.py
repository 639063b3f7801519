"""`waggle engine`: contribute without a window."""

import argparse
import sys

from waggle.cli.shared.options import add_home, add_settings, add_verbose, start_log


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_settings(parser)
    add_verbose(parser)
    parser.add_argument("--stdio", action="store_true", help="take commands from stdin, and exit when it ends")
    parser.add_argument("--until-round", type=int, metavar="N", help="end once the model has played so many rounds in all")
    parser.add_argument("--json", action="store_true", help="print events as JSON lines, also on a terminal")


def run(arguments: argparse.Namespace) -> int:
    """Run until stopped: on a terminal with a line for each round, else with JSON lines. Returns the exit code."""
    from waggle.engine import main

    start_log(arguments)
    if arguments.stdio or arguments.json or not sys.stdout.isatty():
        return main.run(arguments)
    from waggle.cli.watch.terminal_writer import TerminalWriter

    return main.run(arguments, TerminalWriter)
