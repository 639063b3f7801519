"""The control socket for Windows, which has no Unix sockets: a loopback port, and a secret in this user's folder.

Every program of every user can reach the port, but only this user can read the secret, which a client must send first. The
engine answers with a greeting: after a kill, another program may listen on the port in the file.
"""

import asyncio
import hmac
import secrets
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

from waggle.core import paths

HOST = "127.0.0.1"
SECRET_SECONDS = 5.0  # for a client to send the secret
GREETING = b"waggle\n"
HandleConnection = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def listen(folder: Path, handle: HandleConnection, *, limit: int) -> asyncio.Server:
    """Listen, and write the port and the secret into the folder. Disconnect clients that do not begin with the secret."""
    secret = secrets.token_hex(32).encode()

    async def check_secret(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await asyncio.wait_for(reader.readline(), SECRET_SECONDS)
        except (TimeoutError, ConnectionError, ValueError):  # silent, gone, or too long
            line = b""
        if hmac.compare_digest(line.strip(), secret):
            writer.write(GREETING)
            await handle(reader, writer)
        writer.close()

    server = await asyncio.start_server(check_secret, HOST, 0, limit=limit)
    port = server.sockets[0].getsockname()[1]
    paths.write_atomically(_port_file(folder), b"%d %s" % (port, secret), mode=0o600)
    return server


def connect(folder: Path, seconds: float) -> socket.socket:
    """Connect, send the secret, and wait for the greeting. Raises OSError where no engine listens."""
    try:
        port, secret = _port_file(folder).read_bytes().split()
        connection = socket.create_connection((HOST, int(port)), seconds)
    except ValueError as error:
        raise FileNotFoundError("the note of port and secret is damaged") from error
    try:
        connection.sendall(secret + b"\n")
        _require_greeting(connection)
    except OSError:
        connection.close()
        raise
    return connection


def _require_greeting(connection: socket.socket) -> None:
    greeting = b""
    while len(greeting) < len(GREETING) and (more := connection.recv(len(GREETING) - len(greeting))):
        greeting += more
    if greeting != GREETING:
        raise ConnectionRefusedError("another program has the port now")


def _port_file(folder: Path) -> Path:
    return folder / "engine.port"
