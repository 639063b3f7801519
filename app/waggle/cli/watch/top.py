"""`waggle top`: a full-screen view of a running engine, also through ssh."""

import argparse
import os
import socket
import sys
from typing import TextIO

from waggle.cli.shared.options import add_home
from waggle.core import paths
from waggle.core.errors import WaggleError

DUMB = ("", "dumb", "unknown")  # terminals that can only print lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)


def run(arguments: argparse.Namespace) -> int:
    """Show the engine until a person leaves. Returns the exit code. Raises EngineError if none runs, and WaggleError."""
    from waggle.cli.watch.followed import FollowedEngine

    home = paths.home_in(arguments.home)
    engine = FollowedEngine(home)
    _require_terminal()
    from waggle.cli.watch.view.app import Top

    view = Top(home, engine, socket.gethostname())
    return view.run() or view.return_code or 0


def _require_terminal() -> None:
    """Raise WaggleError unless a person sits at a terminal on which can be drawn."""
    is_dumb = sys.platform != "win32" and os.environ.get("TERM", "") in DUMB
    if is_dumb or not all(map(_is_terminal, (sys.stdin, sys.stdout, sys.stderr))):
        raise WaggleError(
            "`waggle top` draws on a whole terminal, and this is none.",
            "Through ssh, write `ssh -t HOST waggle top`. `waggle status` prints the same in a few lines.",
        )


def _is_terminal(stream: TextIO) -> bool:
    return stream.isatty()
