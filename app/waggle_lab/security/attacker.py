"""A hostile peer on a real network: it joins, announces the payload of an attack, and serves it."""

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from waggle.network.identity.keys import Identity
from waggle.network.messages import announcement, directory, handshake
from waggle.network.messages.announcement import Announcement
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport.hivemind.network import HANDSHAKE, PAYLOAD, HivemindNetwork, open_network
from waggle.network.transport.hivemind.patches import load_hivemind
from waggle.network.transport.interface import PeerAway, Services
from waggle.tasks.charter import Charter
from waggle.tasks.questions import epoch_at
from waggle_lab.security import raw_streams
from waggle_lab.security.attacks import Attack, Payload, Scene

LIFETIME_S = 280
CONNECT_RETRIES = 5  # to reach a busy seed
PARALLEL_CALLS = 32  # of a flood
OPEN_STREAMS, PARALLEL_OPENINGS, RETRY_S = 512, 8, 0.01  # of streams that are opened and say nothing
CALL_TIMEOUT_S = 10.0  # long, because a flood of calls is answered slowly


class Attacker:
    """A hostile peer with an identity and a p2pd of its own. Use it on one event loop, and close it."""

    def __init__(self, identity: Identity, charter: Charter) -> None:
        self.identity = identity
        # payloads served, and payloads that were not read to the end, by reader
        self.pulled, self.cut_off = Counter[bytes](), Counter[bytes]()
        self.written = 0  # bytes of payloads served
        self.greeting = b""  # sent instead of the ordinary handshake
        self._charter = charter
        self._digest = charter.digest
        self._unfinished_calls: list[
            tuple[asyncio.StreamReader, asyncio.StreamWriter]
        ] = []  # calls that were begun and never end
        self._payloads: dict[bytes, Payload] = {}
        self._announced = b""
        self._expires = 0
        self._network: HivemindNetwork | None = None

    @property
    def network(self) -> HivemindNetwork:
        assert self._network is not None, "started"
        return self._network

    async def start(self, options: SwarmOptions) -> None:
        """Join the swarm through the seeds of the options; raises SwarmError."""
        self._network = await open_network(options, self.identity, Services(handshake=self._greet), port=0)
        p2p = self._network.daemon.p2p
        await p2p.remove_protobuf_handler(PAYLOAD)  # of an ordinary node
        await p2p.add_binary_stream_handler(PAYLOAD, self._serve)
        for seed in options.seeds:
            await self._connect(seed)
        await self.network.find_neighbours()

    async def _connect(self, seed: str) -> None:
        """Connect to a seed, with retries because a seed under attack may be busy; raises PeerAway."""
        for _ in range(CONNECT_RETRIES):
            with suppress(PeerAway):
                await self.network.connect(seed)
                return
        await self.network.connect(seed)

    async def close(self) -> None:
        for _, writer in self._unfinished_calls:
            writer.transport.abort()
        if self._network is not None:
            await self._network.close()

    async def attack(self, attack: Attack, scene: Scene) -> None:
        """Make the payload of an attack, offer it and announce it."""
        self.offer(await asyncio.to_thread(attack, scene))
        await self.announce()

    def offer(self, payload: Payload) -> None:
        """Sign an announcement of this payload, and send it in handshakes."""
        announced_blob = payload.announced_blob or payload.blob
        self._expires = max(self._expires + 1, int((time.time() + LIFETIME_S) * 1000))
        fields = {
            "charter": self._digest, "sha256": hashlib.sha256(announced_blob).digest(), "size": len(announced_blob),
            "round": payload.round, "epoch": payload.epoch, "specialties": 1, "model": payload.model, "expires": self._expires,
            **payload.changes,
        }  # fmt: skip
        unsigned = Announcement(**fields)
        self._payloads[unsigned.sha256] = payload
        self._announced = announcement.signed(unsigned, self.identity)

    async def announce(self) -> None:
        """Put the announcement into the directory too."""
        key = directory.key_of(self._digest, 0, 0)
        try:
            await self.network.announce(key, self.identity.peer_id, self._announced, self._expires / 1000)
        except PeerAway:  # the swarm refuses it; handshakes still carry it
            return

    async def announce_crowd(self, identities: Sequence[Identity], **changes: Any) -> int:
        """Announce a payload that does not exist under each identity; returns how many announcements the swarm accepted.

        `changes` are fields of the announcements.
        """
        key, accepted = directory.key_of(self._digest, 0, 0), 0
        for identity in identities:
            signed, expires_at = crowd_announcement(self._digest, identity, changes)
            with suppress(PeerAway):  # we are too fast for the swarm
                accepted += await self.network.announce(key, identity.peer_id, signed, expires_at)
        return accepted

    async def steal(self) -> None:
        """Present a peer's announcement as our own, in handshakes and in the directory."""
        key = directory.key_of(self._digest, 0, 0)
        with suppress(PeerAway):  # nothing to steal yet
            for origin, announced in (await self.network.read_directory(key)).items():
                if origin != self.identity.peer_id:
                    self._announced = announced
                    await self.network.announce(key, self.identity.peer_id, announced, time.time() + LIFETIME_S)

    async def flood(self, peers: Sequence[bytes], calls: int) -> int:
        """Pull a payload that does not exist from each peer, `calls` times and fast; returns the number of answers."""
        peers_to_call = iter([peer_id for _ in range(calls) for peer_id in peers])

        async def call_peers() -> int:
            answered = 0
            for peer_id in peers_to_call:
                with suppress(PeerAway):  # refused, as it should be
                    await self.network.pull(peer_id, bytes(32), CALL_TIMEOUT_S)
                    answered += 1
            return answered

        return sum(await asyncio.gather(*(call_peers() for _ in range(PARALLEL_CALLS))))

    async def begin_calls(self, peer_id: bytes, calls: int) -> None:
        """Begin `calls` calls to a peer, each with the longest allowed message except its last byte, and never end them."""
        for _ in range(calls):
            await raw_streams.begin(await self._open_stream(peer_id, PAYLOAD))

    async def declare_calls(self, peer_id: bytes, seconds: float) -> int:
        """Open streams to a peer as fast as it goes: each declares the longest message, and is silent then. Returns how many.

        At most OPEN_STREAMS stay open at this end. If the peer hangs up, it is called again.
        """
        until, opened = time.monotonic() + seconds, 0

        async def open_streams() -> None:
            nonlocal opened
            while time.monotonic() < until:
                try:
                    raw_streams.declare(await self._open_stream(peer_id, HANDSHAKE))
                    opened += 1
                except (OSError, EOFError, *load_hivemind().failures):  # it has just hung up
                    await asyncio.sleep(RETRY_S)
                if len(self._unfinished_calls) > OPEN_STREAMS:
                    self._close_ended_calls()

        await asyncio.gather(*(open_streams() for _ in range(PARALLEL_OPENINGS)))
        return opened

    async def _open_stream(self, peer_id: bytes, handler: str) -> asyncio.StreamWriter:
        p2p = self.network.daemon.p2p
        _, reader, writer = await p2p.call_binary_stream_handler(type(p2p.peer_id)(peer_id), handler)
        self._unfinished_calls.append((reader, writer))
        return writer  # type: ignore[no-any-return]

    def _close_ended_calls(self) -> None:
        """Close our ends of the streams that the peer has closed; without any, the oldest beyond OPEN_STREAMS."""
        ended = [call for call in self._unfinished_calls if call[0].at_eof() or call[1].is_closing()]
        for call in ended or self._unfinished_calls[:-OPEN_STREAMS]:
            self._unfinished_calls.remove(call)
            call[1].transport.abort()

    def _greet(self) -> bytes:
        return self.greeting or handshake.write(self._digest, self._announced)

    async def _serve(self, info: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer_id = info.peer_id.to_bytes()
        try:
            await self._answer(await raw_streams.read_call(reader), peer_id, writer)
        except (ConnectionError, EOFError):  # the reader hung up
            self.cut_off[peer_id] += 1
        finally:
            writer.close()

    async def _answer(self, call: bytes, peer_id: bytes, writer: asyncio.StreamWriter) -> None:
        payload = next((payload for sha256, payload in self._payloads.items() if sha256 in call), Payload(b""))
        self.pulled[peer_id] += bool(payload.blob)
        head, message = raw_streams.answer(call, payload.blob)
        writer.write(head)
        step = 1 if payload.pace_s else raw_streams.CHUNK
        for start in range(0, len(message), step):
            part = message[start : start + step]
            writer.write(part)
            self.written += len(part)
            await writer.drain()
            await asyncio.sleep(payload.pace_s)


def crowd_announcement(digest: bytes, identity: Identity, changes: Mapping[str, Any]) -> tuple[bytes, float]:
    """A signed announcement of a payload that does not exist, and when it expires."""
    fields = {
        "charter": digest, "sha256": hashlib.sha256(identity.peer_id).digest(), "size": 500, "round": 1,
        "epoch": epoch_at(time.time()), "specialties": 1, "model": "m", "expires": int((time.time() + LIFETIME_S) * 1000),
        **changes,
    }  # fmt: skip
    announced = Announcement(**fields)
    return announcement.signed(announced, identity), announced.expires_at
