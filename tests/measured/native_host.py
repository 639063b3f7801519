"""An experiment: py-libp2p (no daemon, no Go) in the place of p2pd, below hivemind's DHTNode and Waggle's HivemindNetwork.

It stands in for hivemind's P2P with as much of it as the transport uses. py-libp2p lives in trio, so it has a thread of its own.
Left out: relays, QUIC, UPnP and streams of several messages.
"""

import asyncio
import concurrent.futures
import sys
import threading
import types
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import libp2p.crypto.pb.crypto_pb2 as crypto
import trio
from libp2p import new_host
from libp2p.crypto.ed25519 import create_new_key_pair
from libp2p.exceptions import BaseLibp2pError
from libp2p.kad_dht.kad_dht import DHTMode, KadDHT
from libp2p.peer.id import ID
from libp2p.peer.peerinfo import PeerInfo
from libp2p.tools.anyio_service import background_trio_service
from libp2p.utils.varint import encode_uvarint
from multiaddr import Multiaddr

from waggle.network.identity.keys import Identity
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport.hivemind import daemon, network, patches
from waggle.network.transport.hivemind.call_limits import CallRefused
from waggle.network.transport.hivemind.rate_limited_p2p import rate_limited
from waggle.network.transport.interface import Services

sys.modules["hivemind.proto.crypto_pb2"] = crypto  # both bring this message along, and protobuf takes it once
HIVEMIND = patches.load_hivemind()
sys.modules["hivemind.proto"].crypto_pb2 = crypto
from hivemind.p2p import P2PContext, PeerID  # noqa: E402
from hivemind.p2p.p2p_daemon_bindings.utils import P2PDaemonError, P2PHandlerError  # noqa: E402
from hivemind.proto import p2pd_pb2 as wire  # noqa: E402

LONGEST = 4 << 20  # bytes of a message, as p2pd has it
SEARCH_S, SERVE_S, RESET_S = 3.0, 20.0, 1.0
AWAY = (BaseLibp2pError, trio.TooSlowError, trio.BrokenResourceError, trio.ClosedResourceError, OSError, EOFError, LookupError,
        ValueError, ExceptionGroup)  # fmt: skip


class Host:
    """What `dht.py` uses of hivemind's P2P."""

    @classmethod
    async def create(cls, *, host_maddrs: list[str], identity_path: str, startup_timeout: float, **_ignored: Any) -> "Host":
        self = cls()
        self.loop, self.counted, self.faults = asyncio.get_running_loop(), Counter[str](), Counter[str]()
        self.listening = [Multiaddr(one) for one in host_maddrs]
        keys = create_new_key_pair(Path(identity_path).read_bytes()[4:36])
        self.host = new_host(key_pair=keys, listen_addrs=self.listening)
        self.peer_id = PeerID(self.host.get_id().to_bytes())
        self.ready: concurrent.futures.Future[None] = concurrent.futures.Future()
        self.gone: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._client = types.SimpleNamespace(connect=self._connect, control=types.SimpleNamespace())
        self._child = types.SimpleNamespace(
            pid=0, returncode=None, wait=self._wait, terminate=self._stop, kill=self._stop,
            stdout=types.SimpleNamespace(read=lambda: asyncio.sleep(0)),
        )  # fmt: skip
        self._reader_task = asyncio.create_task(self._wait())
        threading.Thread(target=self._run, daemon=True).start()
        async with asyncio.timeout(startup_timeout):
            await asyncio.shield(asyncio.wrap_future(self.ready))
        return self

    def _run(self) -> None:
        try:
            trio.run(self._live)
        finally:
            self.gone.set_result(None)

    async def _live(self) -> None:
        self.token, self.stopping = trio.lowlevel.current_trio_token(), trio.Event()
        async with self.host.run(listen_addrs=self.listening), trio.open_nursery() as self.nursery:
            self.routing = KadDHT(self.host, DHTMode.SERVER)  # p2pd's peers look each other up in this one
            async with background_trio_service(self.routing):
                self.ready.set_result(None)
                await self.stopping.wait()
            self.nursery.cancel_scope.cancel()

    def _stop(self) -> None:
        with suppress(trio.RunFinishedError):  # it has
            self.token.run_sync_soon(self.stopping.set)

    async def _wait(self) -> int:
        await asyncio.shield(asyncio.wrap_future(self.gone))
        return 0

    async def shutdown(self) -> None:
        self._stop()
        await self._wait()

    async def in_trio(self, work: Callable[..., Awaitable[Any]], *given: Any) -> Any:
        """Do this in trio's thread; whatever the library fails with is a P2PDaemonError here."""
        future, scope = self.loop.create_future(), trio.CancelScope()

        def answer(result: Any, error: Exception | None) -> None:
            if not future.done():
                future.set_result(result) if error is None else future.set_exception(error)

        async def run() -> None:
            with scope:
                result, error = None, None
                try:
                    result = await work(*given)
                except P2PHandlerError as said:
                    error = said
                except AWAY as fault:
                    self.faults[type(fault).__name__] += 1
                    error = P2PDaemonError(f"{type(fault).__name__}: {fault}"[:200])
                self.loop.call_soon_threadsafe(answer, result, error)

        try:
            self.token.run_sync_soon(lambda: self.nursery.start_soon(run))
            return await future
        except trio.RunFinishedError as over:
            raise P2PDaemonError("the host has ended") from over
        finally:
            with suppress(trio.RunFinishedError):  # nobody waits any more
                self.token.run_sync_soon(scope.cancel)

    async def _connect(self, peer: Any, addresses: list[Any]) -> None:
        async def dial() -> None:
            to = ID(peer.to_bytes())
            await self.host.connect(PeerInfo(to, [Multiaddr(str(one)) for one in addresses]))
            await self.routing.routing_table.add_peer(to)

        await self.in_trio(dial)

    async def call_protobuf_handler(self, peer: Any, name: str, asked: Any, kind: Any) -> Any:
        self.counted["calls"] += 1
        return kind.FromString(await self.in_trio(self._call, peer.to_bytes(), name, asked.SerializeToString()))

    async def _call(self, peer: bytes, name: str, data: bytes) -> bytes:
        to = ID(peer)
        if to not in self.host.get_connected_peers():
            with trio.fail_after(SEARCH_S):
                found = await self.routing.find_peer(to)
            if found is None:
                raise LookupError("not found")
            await self.host.connect(found)
        stream, answered = await self.host.new_stream(to, [name]), False
        try:
            call = wire.CallUnaryRequest(peer=peer, proto=name, data=data)
            await _send(stream, wire.PersistentConnectionRequest(callId=uuid.uuid4().bytes, callUnary=call))
            answer = (await _receive(stream)).unaryResponse
            await stream.close()
            answered = True
        finally:
            if not answered:
                await _reset(stream)
        if answer.HasField("error"):
            raise P2PHandlerError(answer.error.decode(errors="replace")[:200])
        self.counted["answered"] += 1
        return bytes(answer.response)

    async def add_protobuf_handler(self, name: str, handler: Any, kind: Any, **_ignored: Any) -> None:
        await self._add_protobuf_unary_handler(name, handler, kind)

    async def remove_protobuf_handler(self, *_ignored: Any, **_too: Any) -> None:
        """They go with the host."""

    async def _add_protobuf_unary_handler(self, name: str, handler: Any, kind: Any, balanced: bool = False) -> None:
        async def answered(context: Any, data: bytes) -> Any:
            try:
                return wire.CallUnaryResponse(response=(await handler(kind.FromString(data), context)).SerializeToString())
            except (CallRefused, HIVEMIND.failures[2], ValueError) as refused:  # the peer is told
                return wire.CallUnaryResponse(error=repr(refused).encode())

        async def serve(stream: Any) -> None:
            self.counted["asked"] += 1
            try:
                with trio.fail_after(SERVE_S):
                    asked, done = await _receive(stream), trio.Event()
                    context = P2PContext(name, self.peer_id, PeerID(stream.muxed_conn.peer_id.to_bytes()))
                    made = asyncio.run_coroutine_threadsafe(answered(context, asked.callUnary.data), self.loop)
                    made.add_done_callback(lambda _future: self.token.run_sync_soon(done.set))
                    await done.wait()
                    await _send(stream, wire.PersistentConnectionRequest(callId=asked.callId, unaryResponse=made.result()))
                    await stream.close()
                    self.counted["served"] += 1
            except AWAY as fault:
                self.faults[f"serving: {type(fault).__name__}"] += 1
                await _reset(stream)

        self.token.run_sync_soon(lambda: self.host.set_stream_handler(name, serve))

    async def list_peers(self) -> list[Any]:
        async def look() -> list[Any]:
            return [
                types.SimpleNamespace(peer_id=PeerID(one.to_bytes()), addrs=self._addresses_of(one))
                for one in self.host.get_connected_peers()
            ]

        return list(await self.in_trio(look))

    def _addresses_of(self, peer: ID) -> list[str]:
        try:
            return [str(one).split("/p2p/")[0] for one in self.host.get_peerstore().addrs(peer)]
        except LookupError:  # the library forgets them an hour after it learned them, connected or not
            return []

    async def get_visible_maddrs(self, latest: bool = False) -> list[str]:
        async def look() -> list[str]:
            return [str(one) for one in self.host.get_addrs()]

        return list(await self.in_trio(look))


async def open_native(
    options: SwarmOptions, identity: Identity, services: Services, *, port: int, relays: object = ()
) -> network.HivemindNetwork:
    """As `network.open_network`, with this host below."""
    daemon.require_port(options.host, port)
    host = await rate_limited(Host, services, options).create(
        host_maddrs=daemon._listeners(options.host, port), identity_path=str(identity.path), startup_timeout=daemon.START_S
    )
    below = daemon.Daemon(HIVEMIND, host)
    node = await network._start_dht_node(HIVEMIND, host, services)
    await network._serve_reach(HIVEMIND, below)
    return network.HivemindNetwork(HIVEMIND, below, node)


async def _send(stream: Any, message: Any) -> None:
    content = message.SerializeToString()
    await stream.write(encode_uvarint(len(content)) + content)


async def _receive(stream: Any) -> Any:
    size = shift = 0
    while shift < 35:
        byte = (await _exactly(stream, 1))[0]
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    if size > LONGEST:
        raise ValueError("too long a message")
    return wire.PersistentConnectionRequest.FromString(await _exactly(stream, size))


async def _exactly(stream: Any, size: int) -> bytes:
    content = bytearray()
    while len(content) < size:
        part = await stream.read(size - len(content))
        if not part:
            raise EOFError("the stream ended")
        content += part
    return bytes(content)


async def _reset(stream: Any) -> None:
    with trio.CancelScope(shield=True), trio.move_on_after(RESET_S), suppress(*AWAY):
        await stream.reset()
