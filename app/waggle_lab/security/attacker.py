"""A hostile peer on a real network: joins, announces what an attack makes, and serves it."""

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from waggle.network.identity.keys import Identity
from waggle.network.messages import announcement as announcements
from waggle.network.messages import directory, handshake
from waggle.network.messages.announcement import Announcement
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport.hivemind.network import PAYLOAD, HivemindNetwork, open_network
from waggle.network.transport.interface import PeerAway, Services
from waggle.tasks.charter import Charter
from waggle.tasks.questions import epoch_at
from waggle_lab.security import raw_streams
from waggle_lab.security.attacks import Attack, Payload, Scene

LIFETIME_S = 280
PATIENCE = 5  # more tries to reach a seed
AT_ONCE = 32  # calls of a flood
CALL_S = 10.0  # for an answer to one: so many take their time


class Attacker:
    """One identity with its own p2pd. Belongs to one loop; close it."""

    def __init__(self, identity: Identity, charter: Charter) -> None:
        self.identity = identity
        self.pulled, self.cut_off = Counter[bytes](), Counter[bytes]()  # payloads, and those not read to their end, by reader
        self.written = 0  # bytes of payloads
        self.greeting = b""  # said instead of the ordinary one
        self._charter = charter
        self._digest = charter.digest
        self._begun: list[asyncio.StreamWriter] = []  # calls that never end
        self._payloads: dict[bytes, Payload] = {}
        self._announced = b""
        self._expires = 0
        self._network: HivemindNetwork | None = None

    @property
    def network(self) -> HivemindNetwork:
        assert self._network is not None, "started"
        return self._network

    async def start(self, options: SwarmOptions) -> None:
        """Join by the options' seeds; raises SwarmError."""
        self._network = await open_network(options, self.identity, Services(handshake=self._greet), port=0)
        await self._network.daemon.p2p.add_binary_stream_handler(PAYLOAD, self._serve)  # in the place of what a node does there
        for seed in options.seeds:
            await self._meet(seed)
        await self.network.find_neighbours()

    async def _meet(self, seed: str) -> None:
        """A seed under siege may be too busy at first; raises PeerAway."""
        for _ in range(PATIENCE):
            with suppress(PeerAway):
                await self.network.connect(seed)
                return
        await self.network.connect(seed)

    async def close(self) -> None:
        for each in self._begun:
            each.transport.abort()
        if self._network is not None:
            await self._network.close()

    async def attack(self, attack: Attack, scene: Scene) -> None:
        """Offer what the attack makes."""
        self.offer(await asyncio.to_thread(attack, scene))
        await self.announce()

    def offer(self, payload: Payload) -> None:
        """Sign an announcement of this payload; it is told to whoever greets us."""
        told = payload.told_of or payload.blob
        self._expires = max(self._expires + 1, int((time.time() + LIFETIME_S) * 1000))
        fields = {
            "charter": self._digest, "sha256": hashlib.sha256(told).digest(), "size": len(told), "round": payload.round,
            "epoch": payload.epoch, "specialties": 1, "model": payload.model, "expires": self._expires, **payload.changes,
        }  # fmt: skip
        announced = Announcement(**fields)
        self._payloads[announced.sha256] = payload
        self._announced = announcements.signed(announced, self.identity)

    async def announce(self) -> None:
        """Put the announcement into the directory as well."""
        key = directory.key_of(self._digest, 0, 0)
        try:
            await self.network.announce(key, self.identity.peer_id, self._announced, self._expires / 1000)
        except PeerAway:  # the swarm does not take it; whoever greets us still hears it
            return

    async def announce_crowd(self, identities: Sequence[Identity]) -> int:
        """Announce a payload that nobody has under each of these names; how many the swarm took in."""
        key, taken = directory.key_of(self._digest, 0, 0), 0
        for one in identities:
            expires = int((time.time() + LIFETIME_S) * 1000)
            announced = Announcement(
                charter=self._digest, sha256=bytes(32), size=1, round=1, epoch=epoch_at(time.time()), specialties=1, model="m",
                expires=expires,
            )  # fmt: skip
            with suppress(PeerAway):  # too fast for them
                taken += await self.network.announce(key, one.peer_id, announcements.signed(announced, one), expires / 1000)
        return taken

    async def steal(self) -> None:
        """Pass another's announcement off as our own, to whoever greets us and in the directory."""
        key = directory.key_of(self._digest, 0, 0)
        with suppress(PeerAway):  # nothing to steal yet
            for origin, announced in (await self.network.read_directory(key)).items():
                if origin != self.identity.peer_id:
                    self._announced = announced
                    await self.network.announce(key, self.identity.peer_id, announced, time.time() + LIFETIME_S)

    async def flood(self, peers: Sequence[bytes], calls: int) -> int:
        """Ask each peer so often for something it does not have, as fast as it goes; how many calls were answered."""
        left = iter([peer_id for _ in range(calls) for peer_id in peers])

        async def ask() -> int:
            answered = 0
            for peer_id in left:
                with suppress(PeerAway):  # refused, as it should be
                    await self.network.pull(peer_id, bytes(32), CALL_S)
                    answered += 1
            return answered

        return sum(await asyncio.gather(*(ask() for _ in range(AT_ONCE))))

    async def begin_calls(self, peer_id: bytes, calls: int) -> None:
        """Call a peer so often, each time with the longest message there may be, but for its last byte."""
        p2p = self.network.daemon.p2p
        for _ in range(calls):
            _, _, writer = await p2p.call_binary_stream_handler(type(p2p.peer_id)(peer_id), PAYLOAD)
            self._begun.append(writer)
            await raw_streams.begin(writer)

    def _greet(self) -> bytes:
        return self.greeting or handshake.write(self._digest, self._announced)

    async def _serve(self, info: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer_id = info.peer_id.to_bytes()
        try:
            await self._answer(await raw_streams.read_call(reader), peer_id, writer)
        except (ConnectionError, EOFError):  # whoever asked has heard enough
            self.cut_off[peer_id] += 1
        finally:
            writer.close()

    async def _answer(self, call: bytes, peer_id: bytes, writer: asyncio.StreamWriter) -> None:
        payload = next((each for sha256, each in self._payloads.items() if sha256 in call), Payload(b""))
        self.pulled[peer_id] += bool(payload.blob)
        head, message = raw_streams.answer(call, payload.blob)
        writer.write(head)
        step = 1 if payload.pace_s else raw_streams.CHUNK
        for at in range(0, len(message), step):
            writer.write(message[at : at + step])
            self.written += step
            await writer.drain()
            await asyncio.sleep(payload.pace_s)
