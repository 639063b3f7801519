"""p2pd, hivemind's network daemon: one process that holds all connections of this node.

Private parts of hivemind (`p2p._client`, `p2p._child`, `node.protocol`) are used only here, in `network.py`, in
`rate_limited_p2p.py` and in `patches.py`, which imports hivemind; a test checks that.
`transport.py` starts the daemon again when it ends.
"""

import asyncio
import logging
import types
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from waggle.core.errors import SwarmError
from waggle.core.message import Message
from waggle.core.peer_id import is_peer_id
from waggle.core.system.process_memory import resident_bytes
from waggle.network.identity.keys import Identity
from waggle.network.messages.addresses import by_tcp, peer_of
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport.hivemind import memory_limit, relay
from waggle.network.transport.hivemind.call_streams import FRAME
from waggle.network.transport.hivemind.patches import OutgoingCalls, load_hivemind
from waggle.network.transport.hivemind.rate_limited_p2p import LONGEST_CALL, LONGEST_MESSAGE, rate_limited
from waggle.network.transport.hivemind.streamed_p2p import streamed
from waggle.network.transport.interface import ConnectedPeer, PeerAway, Services
from waggle.network.transport.ports import require_port

START_S = 120.0  # a slow disk or a scanner of viruses may hold p2pd up: a slow start is no failure
CONNECT_S = 5.0
EXIT_S = 1.0  # p2pd closes its connection to us this long before it exits, at most
EVERYWHERE = "0.0.0.0"

log = logging.getLogger(__name__)


class Daemon:
    """One p2pd process. It is never restarted: when it ends, another `Daemon` takes its place."""

    def __init__(self, hivemind: types.SimpleNamespace, p2p: Any) -> None:
        self.p2p = p2p
        self._hivemind = hivemind

    @property
    def pid(self) -> int:
        return int(self.p2p._child.pid)

    @property
    def memory(self) -> int:
        """Bytes of memory that p2pd uses; 0 if it has ended."""
        return resident_bytes(self.pid)

    async def connect(self, address: str) -> None:
        """Connect to a multiaddress with a peer id, by TCP. Raises PeerAway."""
        address = by_tcp(address)
        peer_id, multiaddress = self._hivemind.PeerID(peer_of(address)), self._hivemind.Multiaddr(address)
        without_peer = multiaddress.decapsulate(f"/p2p/{peer_id.to_base58()}")
        await self.attempt(self.p2p._client.connect(peer_id, [without_peer]), CONNECT_S)

    async def call(self, handler: str, peer_id: bytes, request: bytes, seconds: float) -> bytes:
        """Call a handler of a peer with bytes, and return the bytes of its answer. Raises PeerAway."""
        peer, kind = self._hivemind.PeerID(peer_id), self._hivemind.BytesValue
        call = self.p2p.call_protobuf_handler(peer, handler, kind(value=request), kind)
        return bytes((await self.attempt(call, seconds)).value)

    async def pull(self, handler: str, peer_id: bytes, request: bytes, longest: int, seconds: float) -> bytes:
        """The same for an answer that may be large, of at most `longest` bytes. PeerAway has the number of bytes that came."""
        peer, kind, pieces = self._hivemind.PeerID(peer_id), self._hivemind.BytesValue, list[int]()
        call = self.p2p.pull(peer, handler, kind(value=request), kind, longest + FRAME, pieces.append)
        try:
            return bytes((await self.attempt(call, seconds)).value)
        except PeerAway as away:
            raise PeerAway(*away.args, received=sum(pieces)) from away

    async def attempt(self, call: Any, seconds: float) -> Any:
        """The call's result. Every way in which a peer or p2pd can fail to give one becomes PeerAway."""
        try:
            async with asyncio.timeout(seconds):  # not wait_for: on Python 3.11 it can swallow a cancellation
                return await call
        except Exception as error:  # an absent peer is normal: the caller asks another peer, or asks later
            if not isinstance(error, self._hivemind.failures):  # hivemind does not expect it, but a stranger can cause it
                log.warning("a network call failed: %r", error)
            raise PeerAway(type(error).__name__) from error

    async def peers(self) -> list[ConnectedPeer]:
        """The peers that p2pd is connected to, each once, if their ids have the form of a node's. Raises PeerAway."""
        connected: dict[bytes, ConnectedPeer] = {}
        for info in await self.attempt(self.p2p.list_peers(), CONNECT_S):  # one entry per connection
            peer_id = info.peer_id.to_bytes()
            if not is_peer_id(peer_id):  # not a Waggle node, and a person could not block it by name
                continue
            if not info.addrs:  # connected by a transport that hivemind cannot name
                connected.setdefault(peer_id, ConnectedPeer(peer_id, "", relayed=True))
            for address in map(str, info.addrs):
                relayed = "/p2p-circuit" in address
                if peer_id not in connected or connected[peer_id].relayed:
                    connected[peer_id] = ConnectedPeer(peer_id, f"{address}/p2p/{info.peer_id.to_base58()}", relayed)
        return list(connected.values())

    async def addresses(self) -> list[str]:
        """Our own multiaddresses, those that other computers can use first. Raises PeerAway."""
        try:
            addresses = await self.attempt(self.p2p.get_visible_maddrs(latest=True), CONNECT_S)
        except PeerAway as away:
            if isinstance(away.__cause__, ValueError):  # p2pd knows no address yet
                return []
            raise
        return sorted(_readable(addresses), key=lambda address: address.startswith(("/ip4/127.", "/ip6/::1")))

    async def hang_up(self, peer_id: bytes) -> None:
        """End all connections to a peer. It may call again."""
        await self.p2p.hang_up(peer_id)

    async def wait_until_exit(self) -> int:
        """Wait until p2pd has ended and return its exit code, or -1 if it has closed its connection to us but does not exit.

        A p2pd without that connection is useless: every call to it would hang.
        """
        child = asyncio.ensure_future(self.p2p._child.wait())
        try:
            await asyncio.wait({child, self.p2p._client.control._read_task}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({child}, timeout=EXIT_S)
            if not child.done():
                self.terminate()
                await asyncio.wait({child}, timeout=CONNECT_S)
            return int(child.result()) if child.done() else -1
        finally:
            child.cancel()

    def terminate(self) -> None:
        """Ask p2pd to end; `wait_until_exit` then returns."""
        with suppress(ProcessLookupError):  # it has ended
            self.p2p._child.terminate()

    async def close(self) -> None:
        """End p2pd, by force if it does not react."""
        await _end(self.p2p)


async def start_daemon(
    options: SwarmOptions, identity: Identity, services: Services, *, port: int, relays: tuple[str, ...] = ()
) -> Daemon:
    """Start p2pd. Raises SwarmError.

    It gets no bootstrap peers, because it exits if all of them are unreachable. With `relays`, it tells others at once to call
    it through these, instead of finding out in minutes that it must.
    """
    require_port(options.host, port)
    hivemind = load_hivemind()

    async def start() -> Any:
        try:
            return await rate_limited(streamed(hivemind.P2P, services.source, LONGEST_CALL), services, options).create(
                host_maddrs=_listeners(options.host, port),
                identity_path=str(identity.path),
                check_if_identity_free=False,  # the check would start a second daemon
                nat_port_map=options.upnp,
                force_reachability="private" if relays else "public" if options.relay else None,
                use_auto_relay=bool(relays),
                trusted_relays=list(map(by_tcp, relays)) or None,
                startup_timeout=START_S,
                persistent_conn_max_msg_size=LONGEST_MESSAGE,
            )
        except (hivemind.P2PDaemonError, ValueError, OSError, EOFError) as error:
            raise SwarmError(
                "The network process does not start.",
                Message("Look at the page Help, or run `waggle doctor`. It says: %1", error)[:300],
            ) from error

    p2p = await (relay.start(hivemind, start, _end) if options.relay else start())
    p2p._client.control._pending_calls = OutgoingCalls()
    memory_limit.limit_by_system(p2p._child.pid)
    return Daemon(hivemind, p2p)


def _listeners(host: str, port: int) -> list[str]:
    """The multiaddresses that p2pd listens on: TCP over IPv4 and IPv6, or at one chosen address.

    No QUIC: whoever can send packets to p2pd's old quic-go can make it use memory without end (CVE-2023-49295, CVE-2024-22189).
    """
    hosts = ("0.0.0.0", "::") if host == EVERYWHERE else (host,)
    return [f"/{'ip6' if ':' in each else 'ip4'}/{each}/tcp/{port}" for each in hosts]


def _readable(addresses: Iterable[Any]) -> Iterator[str]:
    """The addresses that can be written as text: a relay may claim any bytes as its address."""
    for address in addresses:
        with suppress(ValueError):
            yield str(address)


async def _end(p2p: Any) -> None:
    """End p2pd, by force if it does not react."""
    child, control = p2p._child, p2p._client.control
    try:
        async with asyncio.timeout(CONNECT_S):
            await p2p.shutdown()
    except TimeoutError:  # it ignores SIGTERM
        with suppress(ProcessLookupError):  # it has ended just now
            child.kill()
        await child.wait()
    # If p2pd ended first, these tasks have failed. Awaiting them here keeps asyncio from reporting that.
    await asyncio.gather(p2p._reader_task, control._read_task, control._write_task, return_exceptions=True)
    await child.stdout.read()  # to its end, or the pipe would outlive the event loop
