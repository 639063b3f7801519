"""Asks a person at the terminal before something is done that the window would ask about, too."""

import argparse
import sys

from waggle.core.errors import EngineError

REFUSED = 1  # exit code


def add_yes(parser: argparse.ArgumentParser) -> None:
    """Add `--yes`."""
    parser.add_argument("--yes", action="store_true", help="do it without asking")


def is_confirmed(question: str, *, yes: bool) -> bool:
    """Ask on stderr, and read the answer from stdin. Raises EngineError if there is nobody to ask."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise EngineError("Nobody can confirm this here, so nothing was done.", "Add --yes if you want it.")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    sys.stderr.write("Nothing was done.\n")
    return False
