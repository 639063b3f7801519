"""What one stranger's attacks on a gateway add to the memory of a real seed, measured from outside its process.

Attacks are by WebSocket clients with names made up for it, one also by peers. `Siege.growth` samples the seed's resident memory
meanwhile.
"""

import asyncio
import hashlib
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx2
import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.frames import Frame, Opcode

from waggle.core.system.process_memory import resident_bytes
from waggle.network.identity.keys import Identity, load_or_create
from waggle.network.messages import gateway_frames
from waggle.network.messages.addresses import peer_of
from waggle.network.messages.gateway_frames import DirectoryRequest, PullRequest, UploadRequest
from waggle.network.messages.options import SwarmOptions
from waggle.network.messages.rollout_record import MAX_BLOB
from waggle.network.transport.hivemind.network import PAYLOAD, open_network
from waggle.network.transport.hivemind.patches import load_hivemind
from waggle.network.transport.interface import Services
from waggle_lab.security import raw_streams

ROOT = Path(__file__).parents[1]
CLIENTS, UPLOADS = 64, 6  # as in the first such attack, which took 428 MiB
START_S, SAMPLE_S = 120.0, 0.02
MIB = 1 << 20
FAILED = (ConnectionClosed, InvalidHandshake, OSError, TimeoutError, EOFError)


@dataclass
class Siege:
    """A seed's process and its gateway's address. `clients` has a folder for made-up keys."""

    pid: int
    port: int
    folder: Path

    @property
    def address(self) -> str:
        return f"ws://127.0.0.1:{self.port}/gateway"

    async def peer_address(self) -> str:
        """Where peers reach the seed."""
        async with httpx2.AsyncClient() as browser:
            status = (await browser.get(f"http://127.0.0.1:{self.port}/status.json")).json()
            return str(status["addresses"][0])

    async def growth(self, attack: "Attack", seconds: float) -> float:
        """MiB that the seed's memory grows by at most while it is attacked."""
        before = most = resident_bytes(self.pid)
        attacking = asyncio.create_task(attack(self))
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not attacking.done():
                    most = max(most, resident_bytes(self.pid))
                    await asyncio.sleep(SAMPLE_S)
        attacking.cancel()
        with suppress(asyncio.CancelledError, *FAILED):  # any other error is one of the attack itself
            await attacking
        return (most - before) / MIB

    @asynccontextmanager
    async def crowd(self, count: int = CLIENTS) -> AsyncIterator[list[ClientConnection]]:
        """So many clients, each with a name of its own, or fewer if not all are let in."""
        async with AsyncExitStack() as stack:
            here: list[ClientConnection] = []
            for number in range(count):
                with suppress(*FAILED):
                    way = await stack.enter_async_context(
                        connect(self.address, max_size=None, compression=None, close_timeout=0.1)
                    )
                    await introduce(way, load_or_create(self.folder / f"{number}.key"))
                    await way.recv()
                    here.append(way)
            assert here, "nobody was let in"
            yield here
            for way in here:
                way.transport.abort()


Attack = Callable[[Siege], Awaitable[None]]


async def introduce(connection: ClientConnection, who: Identity) -> None:
    welcome = msgspec.msgpack.decode(await connection.recv(), type=gateway_frames.Welcome)
    signature = who.sign(gateway_frames.DOMAIN, welcome.peer_id + welcome.nonce)
    await connection.send(msgspec.msgpack.encode(gateway_frames.Hello(who.peer_id, b"", signature)))


async def upload_much(siege: Siege) -> None:
    """64 clients upload 6 payloads of 2 MiB each, as fast as they are read."""

    async def upload(way: ClientConnection) -> None:
        with suppress(*FAILED):
            for number in range(UPLOADS):
                await way.send(msgspec.msgpack.encode(UploadRequest(number, os.urandom(MAX_BLOB))))
            for _ in range(UPLOADS):
                await way.recv()

    async with siege.crowd() as crowd:
        await asyncio.gather(*map(upload, crowd))


async def begin_messages(siege: Siege) -> None:
    """64 clients send the largest message but for its last kilobyte, and then nothing."""
    begun = Frame(Opcode.BINARY, os.urandom(MAX_BLOB)).serialize(mask=True)[:-1024]

    async def begin(way: ClientConnection) -> None:
        way.transport.write(begun)
        while way.transport.get_write_buffer_size() and not way.transport.is_closing():
            await asyncio.sleep(0.01)

    async with siege.crowd() as crowd:
        await asyncio.gather(*map(begin, crowd))
        await asyncio.sleep(5.0)


async def read_nothing(siege: Siege) -> None:
    """64 clients upload a payload, ask for it again and again, and read nothing."""
    async with siege.crowd() as crowd:

        async def ask(number: int, way: ClientConnection) -> None:
            blob = number.to_bytes(4, "big") + os.urandom(MAX_BLOB - 4)
            with suppress(*FAILED):
                await way.send(msgspec.msgpack.encode(UploadRequest(1, blob)))
                await way.recv()
                way.transport.pause_reading()
                for turn in range(50):
                    await way.send(msgspec.msgpack.encode(PullRequest(turn, bytes(38), hashlib.sha256(blob).digest())))
                    await way.send(msgspec.msgpack.encode(DirectoryRequest(turn)))
                    await asyncio.sleep(0.05)

        await asyncio.gather(*(ask(number, way) for number, way in enumerate(crowd)))
        await asyncio.sleep(5.0)


async def leave_payloads_unread(siege: Siege) -> None:
    """8 clients upload a payload of 2 MiB each; 3 peers ask for these again and again, and read nothing of it."""
    blobs = [os.urandom(MAX_BLOB) for _ in range(8)]
    seed = await siege.peer_address()
    async with siege.crowd(len(blobs)) as crowd, AsyncExitStack() as stack:
        for way, blob in zip(crowd, blobs, strict=True):
            await way.send(msgspec.msgpack.encode(UploadRequest(1, blob)))
            await way.recv()
        streams: list[asyncio.StreamWriter] = []
        for number in range(3):
            options = SwarmOptions(host="127.0.0.1")
            peer = await open_network(options, load_or_create(siege.folder / f"peer {number}.key"), Services(), port=0)
            stack.push_async_callback(peer.close)
            await peer.connect(seed)
            for turn in range(32):
                p2p, blob = peer.daemon.p2p, blobs[turn % len(blobs)]
                with suppress(*load_hivemind().failures):
                    _, reader, writer = await p2p.call_binary_stream_handler(type(p2p.peer_id)(peer_of(seed)), PAYLOAD)
                    reader._transport.pause_reading()
                    raw_streams.call(writer, peer_of(seed), PAYLOAD, hashlib.sha256(blob).digest())
                    streams.append(writer)
        await asyncio.sleep(5.0)
        for writer in streams:
            writer.transport.abort()


async def long_requests(siege: Siege) -> None:
    """128 connections send headers without end."""
    header = b"X-Filler: " + b"x" * 8000 + b"\r\n"
    writers: list[asyncio.StreamWriter] = []
    try:
        for _ in range(128):
            _, writer = await asyncio.open_connection("127.0.0.1", siege.port)
            writers.append(writer)
            writer.write(b"GET /gateway HTTP/1.1\r\n" + header * 120)
        for writer in writers:
            with suppress(*FAILED):
                await asyncio.wait_for(writer.drain(), 5.0)
        await asyncio.sleep(4.0)
    finally:
        for writer in writers:
            writer.transport.abort()


async def come_and_go(siege: Siege) -> None:
    """Clients with ever new names come, and leave."""
    for _ in range(10):
        async with siege.crowd(30):
            pass


ATTACKS: dict[str, Attack] = {
    each.__name__: each for each in (upload_much, begin_messages, read_nothing, leave_payloads_unread, long_requests, come_and_go)
}


@asynccontextmanager
async def besieged_seed(folder: Path) -> AsyncIterator[Siege]:
    """A real seed with a gateway, in a process of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    settings = {"swarm.host": "127.0.0.1", "web.port": port, "web.gateway": "true"}
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    command = [sys.executable, "-m", "waggle", "seed", "--home", str(folder / "home"), *words]
    log = (folder / "seed.log").open("wb")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "app")}
    process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        async with asyncio.timeout(START_S), httpx2.AsyncClient() as browser:
            while True:
                with suppress(httpx2.HTTPError):
                    if (await browser.get(f"http://127.0.0.1:{port}/")).status_code == 200:
                        break
                assert process.poll() is None, (folder / "seed.log").read_text()
                await asyncio.sleep(0.2)
        keys = folder / "keys"
        keys.mkdir()
        siege = Siege(process.pid, port, keys)
        async with siege.crowd(2):  # what the first clients load is no growth
            pass
        yield siege
    finally:
        process.terminate()
        process.wait(30)
        log.close()
