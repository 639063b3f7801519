"""`waggle top`: a full-screen view of a running engine, also through ssh. Without a terminal, it prints the view once."""

import argparse
import sys

from rich.console import Console
from rich.live import Live

from waggle.cli.shared.engine import ask
from waggle.cli.shared.options import add_home
from waggle.cli.watch.followed import FollowedEngine
from waggle.cli.watch.keyboard import single_keys
from waggle.cli.watch.screen import screen
from waggle.core import paths
from waggle.core.errors import EngineError
from waggle.protocol import commands

REFRESH_SECONDS = 0.25
WIDTH, HEIGHT = 110, 34  # of a view that is printed once


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    parser.add_argument("--once", action="store_true", help="print the view once, as text")


def run(arguments: argparse.Namespace) -> int:
    """Show the engine until a key ends that. Raises EngineError if none runs."""
    home = paths.home_in(arguments.home)
    engine = FollowedEngine(home)
    if arguments.once or not sys.stdout.isatty():
        console = Console(width=WIDTH, height=HEIGHT, highlight=False)
        console.print(screen(engine.state, "", WIDTH, HEIGHT), height=HEIGHT)
        return 0
    engine.start()
    try:
        return _show(home, engine)
    finally:
        engine.close()


def _show(home: paths.Home, engine: FollowedEngine) -> int:
    """Redraw until a key ends that. Returns the exit code."""
    console = Console(highlight=False)
    with single_keys() as read_key, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(screen(engine.state, engine.ended, console.width, console.height), refresh=True)
            match read_key(REFRESH_SECONDS):
                case "q" | "Q" | "\x1b" | "\x03":
                    return 0
                case "p" | "P":
                    _send(home, engine, commands.Pause(id=commands.new_id()))
                case "r" | "R":
                    _send(home, engine, commands.Resume(id=commands.new_id()))


def _send(home: paths.Home, engine: FollowedEngine, command: commands.AnyCommand) -> None:
    try:
        ask(home, command)
    except EngineError as error:  # it ends, or is in the middle of a step: the view says what happens
        engine.ended = engine.ended or f"{error.title} {error.advice}".strip()
