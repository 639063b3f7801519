"""`waggle seed`: a node that others find the swarm through. It serves the charter and the directory and trains nothing."""

import argparse
import asyncio
import contextlib
import signal
import sys

from waggle import paths, settings
from waggle.engine import others
from waggle.swarm import identity, seed


def run(arguments: argparse.Namespace) -> int:
    """Serve until stopped; the addresses to invite others with are printed first."""
    home = (paths.Home(arguments.home.expanduser()) if arguments.home else paths.default_home()).prepare()
    chosen = settings.read(home.settings, tuple(arguments.set))
    asyncio.run(_serve(home, chosen))
    return 0


async def _serve(home: paths.Home, chosen: settings.Settings) -> None:
    charter = await others.charter_of(home, chosen)
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):  # Windows: Ctrl+C arrives as KeyboardInterrupt instead
            asyncio.get_running_loop().add_signal_handler(name, stop.set)
    await seed.run(others.options_of(home, chosen), identity.load_or_create(home.identity), charter, _say, stop)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
