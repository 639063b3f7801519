"""`waggle seed`: a node that others find the swarm through. It serves the charter and the directory and trains nothing."""

import argparse
import asyncio
import contextlib
import dataclasses
import re
import signal
import socket
import sys

from waggle.cli.shared.options import add_home, add_settings, add_verbose, start_log
from waggle.core import paths, settings
from waggle.core.errors import SwarmError
from waggle.core.message import Message
from waggle.core.system.os_faults import fault_of
from waggle.core.system.process_memory import return_large_blocks
from waggle.engine.control import server
from waggle.engine.services.swarms import swarm_connection
from waggle.network import seed
from waggle.network.identity import keys, membership
from waggle.tasks.piece_store import PieceStore
from waggle.tasks.sandbox.verifier import Verifier

MANY = (65_536, 24_576, 10_240)  # open files, tried in turn: macOS refuses more than its kernel allows a process
PORT_FILE = "seed_port"  # of its home
SMALL_BLOCK = 1 << 16  # bytes: what strangers send is given back when they leave
PORT = re.compile(r"[1-9][0-9]{0,4}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_settings(parser)
    add_verbose(parser)


def run(arguments: argparse.Namespace) -> int:
    """Serve until stopped, and print the addresses for invites, one a line.

    Raises EngineError if an engine or another seed uses this home, because both would be the same peer.
    """
    start_log(arguments)
    home = paths.home_in(arguments.home).prepare()
    chosen = settings.read(home.settings, tuple(arguments.set))
    claimed = server.claim_home(home)
    try:
        _allow_many_connections()
        return_large_blocks(SMALL_BLOCK)
        asyncio.run(_serve(home, chosen))
    finally:
        claimed.release()
    return 0


async def _serve(home: paths.Home, chosen: settings.Settings) -> None:
    charter = await swarm_connection.charter_of(home, chosen)
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):  # Windows: Ctrl+C arrives as KeyboardInterrupt instead
            asyncio.get_running_loop().add_signal_handler(name, stop.set)
    key = membership.read_key(home.swarm(charter.digest.hex()).key)
    options = swarm_connection.options_of(home, chosen, key, charter.digest.hex())
    # Invites contain its address, so it keeps the port that it found at its first start.
    options = dataclasses.replace(options, relay=True, port=options.port or _port_of_old(home, options.host))
    myself = keys.load_or_create(home.identity)
    limit = chosen.computer.traffic_kb * 1e3 or None
    if options.web_port is None:
        await seed.run(options, myself, charter, _say, stop, limit=limit)
        return
    store = PieceStore(home.questions, charter)
    if await asyncio.to_thread(store.missing):  # judging needs them: serve without a page until members gave them
        plain = dataclasses.replace(options, web_port=None)
        await seed.run(plain, myself, charter, _say, stop, limit=limit, only_until_complete=True)
        if stop.is_set():
            return
    files = await asyncio.to_thread(store.files)
    verifier = await asyncio.to_thread(Verifier, charter, files=files)
    try:
        await asyncio.to_thread(verifier.check_charter)
        await seed.run_with_page(options, myself, charter, verifier, _say, stop)
    finally:
        verifier.close()


def _port_of_old(home: paths.Home, host: str) -> int:
    """The port of the last start, or a free one. Raises SwarmError."""
    with contextlib.suppress(OSError, UnicodeDecodeError):  # the first start, or a damaged file: find a free port
        content = (home.root / PORT_FILE).read_text(encoding="ascii")
        if PORT.fullmatch(content) and int(content) <= 65_535:
            return int(content)
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.bind((host, 0))
            port = int(probe.getsockname()[1])
    except OSError as error:
        raise SwarmError(
            Message("%1 cannot be listened on: %2.", host, fault_of(error).reason), "Choose another address or port."
        ) from error
    paths.write_atomically(home.root / PORT_FILE, str(port).encode())
    return port


def _allow_many_connections() -> None:
    """Raise the limit of open files as far as the system allows, because each peer needs one."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for many in MANY:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (many if hard == resource.RLIM_INFINITY else min(hard, many), hard))
            return


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
