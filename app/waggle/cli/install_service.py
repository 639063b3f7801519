"""`waggle install-service`: let the engine contribute without a window from each login on, or no longer."""

import argparse
import sys

from waggle.cli.shared.options import add_home
from waggle.core import login_start, paths


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--remove", action="store_true", help="start nothing at a login any more, and stop the service")
    which.add_argument("--print", action="store_true", help="print the file that would be written, and change nothing")


def run(arguments: argparse.Namespace) -> int:
    """Set the service up, remove it, or print its file. Raises EngineError."""
    home = paths.home_in(arguments.home)
    if arguments.print:
        now = login_start.registration("engine", home)
        sys.stdout.write(f"{now.file}:\n{now.content.decode('utf-16' if sys.platform == 'win32' else 'utf-8')}")
        return 0
    if arguments.remove:
        gone = login_start.remove(home)
        return _say("\n".join(f"Removed {file}." for file in gone) or "Nothing of Waggle starts at a login.")
    trouble = login_start.choose("engine", home.prepare())
    _say(f"The engine starts when you log in: {login_start.registration('engine', home).file}.")
    if trouble:
        return _say(f"It could not be started at once: {trouble}")
    return _say("`waggle status` says what it does, `waggle install-service --remove` removes it.")


def _say(words: str) -> int:
    sys.stdout.write(words + "\n")
    return 0
