"""An experiment: py-libp2p (no daemon, no Go) in the place of p2pd, below hivemind's DHTNode and Waggle's HivemindNetwork.

It stands in for hivemind's P2P with as much of it as the transport uses. py-libp2p lives in trio, so it has a thread of its own.
Left out: relays, UPnP and streams of several messages.
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
from waggle.network.transport.ports import require_port

sys.modules["hivemind.proto.crypto_pb2"] = crypto  # both packages define this message, and protobuf accepts only one definition
HIVEMIND = patches.load_hivemind()
sys.modules["hivemind.proto"].crypto_pb2 = crypto
from hivemind.p2p import P2PContext, PeerID  # noqa: E402
from hivemind.p2p.p2p_daemon_bindings.utils import P2PDaemonError, P2PHandlerError  # noqa: E402
from hivemind.proto import p2pd_pb2 as wire  # noqa: E402

MAX_MESSAGE = 4 << 20  # bytes, the limit of p2pd
SEARCH_TIMEOUT_S, SERVE_TIMEOUT_S, RESET_TIMEOUT_S = 3.0, 20.0, 1.0
PEER_FAILURES = (
    BaseLibp2pError, trio.TooSlowError, trio.BrokenResourceError, trio.ClosedResourceError, OSError, EOFError, LookupError,
    ValueError, ExceptionGroup,
)  # fmt: skip


class NativeHost:
    """The part of hivemind's P2P that Waggle's Dht uses."""

    @classmethod
    async def create(cls, *, host_maddrs: list[str], identity_path: str, startup_timeout: float, **_ignored: Any) -> "NativeHost":
        self = cls()
        self.loop, self.counts, self.faults = asyncio.get_running_loop(), Counter[str](), Counter[str]()
        self.listening = [Multiaddr(address) for address in host_maddrs]
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
            self.routing = KadDHT(self.host, DHTMode.SERVER)  # the DHT in which p2pd's peers find each other
            async with background_trio_service(self.routing):
                self.ready.set_result(None)
                await self.stopping.wait()
            self.nursery.cancel_scope.cancel()

    def _stop(self) -> None:
        with suppress(trio.RunFinishedError):  # it has stopped already
            self.token.run_sync_soon(self.stopping.set)

    async def _wait(self) -> int:
        await asyncio.shield(asyncio.wrap_future(self.gone))
        return 0

    async def shutdown(self) -> None:
        self._stop()
        await self._wait()

    async def in_trio(self, work: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        """Run `work` in trio's thread; raises P2PDaemonError for every failure of the library."""
        future, scope = self.loop.create_future(), trio.CancelScope()

        def answer(result: Any, error: Exception | None) -> None:
            if not future.done():
                future.set_result(result) if error is None else future.set_exception(error)

        async def run() -> None:
            with scope:
                result, error = None, None
                try:
                    result = await work(*arguments)
                except P2PHandlerError as handler_error:
                    error = handler_error
                except PEER_FAILURES as fault:
                    self.faults[type(fault).__name__] += 1
                    error = P2PDaemonError(f"{type(fault).__name__}: {fault}"[:200])
                self.loop.call_soon_threadsafe(answer, result, error)

        try:
            self.token.run_sync_soon(lambda: self.nursery.start_soon(run))
            return await future
        except trio.RunFinishedError as over:
            raise P2PDaemonError("the host has ended") from over
        finally:
            with suppress(trio.RunFinishedError):  # the host has ended
                self.token.run_sync_soon(scope.cancel)

    async def _connect(self, peer: Any, addresses: list[Any]) -> None:
        async def dial() -> None:
            peer_id = ID(peer.to_bytes())
            await self.host.connect(PeerInfo(peer_id, [Multiaddr(str(address)) for address in addresses]))
            await self.routing.routing_table.add_peer(peer_id)

        await self.in_trio(dial)

    async def call_protobuf_handler(self, peer: Any, name: str, request: Any, kind: Any) -> Any:
        self.counts["calls"] += 1
        return kind.FromString(await self.in_trio(self._call, peer.to_bytes(), name, request.SerializeToString()))

    async def pull(self, peer: Any, name: str, request: Any, kind: Any, _longest: int, meter: Callable[[int], None]) -> Any:
        answer = await self.call_protobuf_handler(peer, name, request, kind)
        meter(len(answer.value))
        return answer

    async def _call(self, peer: bytes, name: str, data: bytes) -> bytes:
        peer_id = ID(peer)
        if peer_id not in self.host.get_connected_peers():
            with trio.fail_after(SEARCH_TIMEOUT_S):
                peer_info = await self.routing.find_peer(peer_id)
            if peer_info is None:
                raise LookupError("not found")
            await self.host.connect(peer_info)
        stream, answered = await self.host.new_stream(peer_id, [name]), False
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
        self.counts["answered"] += 1
        return bytes(answer.response)

    async def add_protobuf_handler(self, name: str, handler: Any, kind: Any, **_ignored: Any) -> None:
        await self._add_protobuf_unary_handler(name, handler, kind)

    async def remove_protobuf_handler(self, *_ignored: Any, **_too: Any) -> None:
        """Do nothing: handlers end with the host."""

    async def _add_protobuf_unary_handler(self, name: str, handler: Any, kind: Any, balanced: bool = False) -> None:
        async def answered(context: Any, data: bytes) -> Any:
            try:
                return wire.CallUnaryResponse(response=(await handler(kind.FromString(data), context)).SerializeToString())
            except (CallRefused, HIVEMIND.failures[2], ValueError) as refused:  # sent to the peer
                return wire.CallUnaryResponse(error=repr(refused).encode())

        async def serve(stream: Any) -> None:
            self.counts["asked"] += 1
            try:
                with trio.fail_after(SERVE_TIMEOUT_S):
                    request, done = await _receive(stream), trio.Event()
                    context = P2PContext(name, self.peer_id, PeerID(stream.muxed_conn.peer_id.to_bytes()))
                    future = asyncio.run_coroutine_threadsafe(answered(context, request.callUnary.data), self.loop)
                    future.add_done_callback(lambda _future: self.token.run_sync_soon(done.set))
                    await done.wait()
                    await _send(stream, wire.PersistentConnectionRequest(callId=request.callId, unaryResponse=future.result()))
                    await stream.close()
                    self.counts["served"] += 1
            except PEER_FAILURES as fault:
                self.faults[f"serving: {type(fault).__name__}"] += 1
                await _reset(stream)

        self.token.run_sync_soon(lambda: self.host.set_stream_handler(name, serve))

    async def list_peers(self) -> list[Any]:
        async def look() -> list[Any]:
            return [
                types.SimpleNamespace(peer_id=PeerID(peer.to_bytes()), addrs=self._addresses_of(peer))
                for peer in self.host.get_connected_peers()
            ]

        return list(await self.in_trio(look))

    def _addresses_of(self, peer: ID) -> list[str]:
        try:
            return [str(address).split("/p2p/")[0] for address in self.host.get_peerstore().addrs(peer)]
        except LookupError:  # the library forgets addresses after an hour, even of connected peers
            return []

    async def get_visible_maddrs(self, latest: bool = False) -> list[str]:
        async def look() -> list[str]:
            return [str(address) for address in self.host.get_addrs()]

        return list(await self.in_trio(look))


async def open_native(
    options: SwarmOptions, identity: Identity, services: Services, *, port: int, relays: object = ()
) -> network.HivemindNetwork:
    """As `network.open_network`, with this host below."""
    require_port(options.host, port)
    host = await rate_limited(NativeHost, services, options).create(
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
    if size > MAX_MESSAGE:
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
    with trio.CancelScope(shield=True), trio.move_on_after(RESET_TIMEOUT_S), suppress(*PEER_FAILURES):
        await stream.reset()
