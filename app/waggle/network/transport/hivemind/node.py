"""hivemind as a node uses it: one life of its daemon (p2pd) and of the DHT node above it.

Private parts of hivemind (`p2p._client`, `p2p._child`, `node.protocol`) are used only here, in `rate_limited_p2p.py` and in
`patches.py`, which imports it; a test checks that.
Left out: starting p2pd again and joining again, which is `connection.py`.
"""

import asyncio
import errno
import logging
import math
import socket
import time
import types
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from waggle.core.errors import SwarmError
from waggle.core.peer_id import is_peer_id
from waggle.core.process_memory import held_by
from waggle.network.identity.keys import Identity
from waggle.network.messages.addresses import peer_of
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport.hivemind import relay
from waggle.network.transport.hivemind.dht_validator import Guard, unpacked
from waggle.network.transport.hivemind.liveness import Neighbours, Resting
from waggle.network.transport.hivemind.patches import ANNOUNCEMENTS, Announcements, Answering, OpenCalls, load_hivemind
from waggle.network.transport.hivemind.rate_limited_p2p import limited
from waggle.network.transport.hivemind.reachability import Callback
from waggle.network.transport.hivemind.rpc_handlers import Refused
from waggle.network.transport.interface import Connected, PeerAway, Pong, Services

# Unary handlers: 32 bytes of sha256 in, in a private swarm a certificate behind them; the bytes they name out (nothing: not here)
PAYLOAD = "waggle/payload/1"
CHARTER = "waggle/charter/1"
GREETING = "waggle/greeting"  # nothing in, our greeting out
REACH = "waggle/reach/1"  # a port in two bytes in; b"1" where a call to it at the asker's own address was answered, else b"0"
START_S = 30.0
CALL_S = 10.0  # for a store, whatever hivemind tries in between
READ_S = 8.0  # for a read: a light client, for whom it may be, waits for ten
CONNECT_S = 5.0
PING_S = 3.0
LAST_BREATH_S = 1.0  # of p2pd, whose connection to us ends before it does
NEIGHBOURS = 10  # of a key, asked in every search: hivemind's 20 cost twice as much, and a value has five replicas
EVERYWHERE = "0.0.0.0"

log = logging.getLogger(__name__)


class Dht:
    """One life of p2pd. When it dies, `ended` returns and this object is closed and replaced."""

    copies = 5  # replicas of a shard, each of which answers with all that it holds

    def __init__(self, hivemind: types.SimpleNamespace, p2p: Any, node: Any) -> None:
        self._hivemind = hivemind
        self._p2p = p2p
        self._node = node

    @property
    def pid(self) -> int:
        """The process id of p2pd."""
        return int(self._p2p._child.pid)

    @property
    def memory(self) -> int:
        """Bytes that p2pd holds in memory; 0 where it has ended."""
        return held_by(self.pid)

    async def announce(self, key: str, peer_id: bytes, signed: bytes, expires_at: float) -> bool:
        """Put a signed announcement into the directory. True says little: a node that is alone also stores."""
        store = self._node.store(key, signed, expires_at, subkey=peer_id, num_workers=8)
        return bool(await self._patiently(store, CALL_S))

    async def read(self, key: str) -> dict[bytes, bytes]:
        """The signed announcements of one shard by peer id. The guard has verified each of them.

        Where that takes too long, what was found so far: a few replicas that never answer hide nobody whom the others know.
        Raises PeerAway where that is nothing.
        """
        announced: Announcements = {}
        before = ANNOUNCEMENTS.set(announced)
        try:
            # Several replicas are merged (`latest`): any one of them may be behind.
            answer = await self._patiently(self._node.get(key, latest=True, num_workers=2), READ_S)
        except PeerAway:
            found_so_far = self._stored_here(key) | {peer_id: signed for peer_id, (signed, _) in announced.items()}
            if not found_so_far:
                raise
            return found_so_far
        finally:
            ANNOUNCEMENTS.reset(before)
        return {} if answer is None else {peer_id: entry.value for peer_id, entry in answer.value.items()}

    def _stored_here(self, key: str) -> dict[bytes, bytes]:
        """What this node itself stores under a key for others."""
        stored = self._node.protocol.storage.get(self._hivemind.DHTID.generate(key))
        entries = stored.value.items() if stored is not None else ()
        return {peer_id: unpacked(entry.value) or b"" for peer_id, entry in entries}

    async def lodge(self, sha256: bytes, blob: bytes) -> tuple[bytes, ...]:
        """Nowhere: whoever can be called gives out its payloads itself."""
        return ()

    async def pull(self, peer_id: bytes, sha256: bytes, seconds: float, certificate: bytes = b"") -> bytes:
        """The bytes a peer gives for this hash, not yet compared with it; b"" where it has none. Raises PeerAway."""
        return await self._ask(PAYLOAD, peer_id, sha256 + certificate, seconds)

    async def greet(self, peer_id: bytes) -> bytes:
        """A peer's greeting, not yet read. Raises PeerAway."""
        return await self._ask(GREETING, peer_id, b"", PING_S)

    async def fetch_charter(self, peer_id: bytes, sha256: bytes) -> bytes:
        """The charter document a peer gives for this hash, not yet compared with it. Raises PeerAway."""
        return await self._ask(CHARTER, peer_id, sha256, CONNECT_S)

    async def is_reached_by(self, peer_id: bytes, port: int) -> bool:
        """Whether a peer that we called can call us as well, at this port. Raises PeerAway where it does not say."""
        answer = await self._ask(REACH, peer_id, port.to_bytes(2, "big"), CONNECT_S)
        if answer not in (b"0", b"1"):
            raise PeerAway("no answer to the question")
        return answer == b"1"

    async def connect(self, address: str) -> Pong:
        """Connect to a multiaddress and make sure that a DHT node answers there; raises PeerAway."""
        peer_id, multiaddress = self._hivemind.PeerID(peer_of(address)), self._hivemind.Multiaddr(address)
        transport = multiaddress.decapsulate(f"/p2p/{peer_id.to_base58()}")
        await self._patiently(self._p2p._client.connect(peer_id, [transport]), CONNECT_S)
        return await self.ping(peer_id.to_bytes())

    async def settle(self) -> None:
        """Look for our own neighbours, so that they know us and we know them; raises PeerAway."""
        await self._patiently(self._node.find_nearest_nodes([self._node.node_id]), CALL_S)

    async def ping(self, peer_id: bytes) -> Pong:
        """Ask a DHT node for a sign of life and its clock; raises PeerAway."""
        protocol, peer = self._node.protocol, self._hivemind.PeerID(peer_id)
        request = self._hivemind.dht_pb2.PingRequest(peer=protocol.node_info, validate=False)
        sent_at, started = time.time(), time.perf_counter()
        response = await self._patiently(protocol.get_stub(peer).rpc_ping(request, timeout=PING_S), PING_S)
        seconds = time.perf_counter() - started
        if len(response.peer.node_id) != 20 or not math.isfinite(response.dht_time):
            raise PeerAway("not a DHT node")
        node_id = self._hivemind.DHTID.from_bytes(response.peer.node_id)
        await protocol.update_routing_table(node_id, peer, responded=True)
        return Pong(delay_ms=seconds * 1000, skew_s=response.dht_time - (sent_at + seconds / 2))

    async def peers(self) -> list[Connected]:
        """Whom p2pd holds a connection to, each once, where the key is of a node's kind; raises PeerAway when p2pd is silent."""
        connected: dict[bytes, Connected] = {}
        for info in await self._patiently(self._p2p.list_peers(), CONNECT_S):  # one for each connection
            peer_id = info.peer_id.to_bytes()
            if not is_peer_id(peer_id):  # no node of ours, and by no name that a person could block it by
                continue
            if not info.addrs:  # it came by a way that hivemind has no word for
                connected.setdefault(peer_id, Connected(peer_id, "", relayed=True))
            for address in map(str, info.addrs):
                relayed = "/p2p-circuit" in address
                if peer_id not in connected or connected[peer_id].relayed:
                    connected[peer_id] = Connected(peer_id, f"{address}/p2p/{info.peer_id.to_base58()}", relayed)
        return list(connected.values())

    async def addresses(self) -> list[str]:
        """Our own multiaddresses, those of use to other computers first; raises PeerAway when p2pd does not answer."""
        try:
            addresses = await self._patiently(self._p2p.get_visible_maddrs(latest=True), CONNECT_S)
        except PeerAway as away:
            if isinstance(away.__cause__, ValueError):  # p2pd knows no address (yet)
                return []
            raise
        return sorted(_readable(addresses), key=lambda address: address.startswith(("/ip4/127.", "/ip6/::1")))

    async def ended(self) -> int:
        """Wait until p2pd has ended and return its code, -1 where it does not end although nobody hears it any more.

        Its calls would only hang.
        """
        child = asyncio.ensure_future(self._p2p._child.wait())
        try:
            await asyncio.wait({child, self._p2p._client.control._read_task}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({child}, timeout=LAST_BREATH_S)
            if not child.done():
                self.end()
                await asyncio.wait({child}, timeout=CONNECT_S)
            return int(child.result()) if child.done() else -1
        finally:
            child.cancel()

    def end(self) -> None:
        """Ask p2pd to end: whoever waits for `ended` starts another."""
        with suppress(ProcessLookupError):  # it has
            self._p2p._child.terminate()

    async def close(self) -> None:
        """End p2pd, by force if it does not listen."""
        with suppress(PeerAway):  # handlers cannot be removed from a daemon that is gone
            if self._p2p._child.returncode is None:
                await self._patiently(self._node.shutdown(), CONNECT_S)
        await _end(self._p2p)

    async def _ask(self, handler: str, peer_id: bytes, request: bytes, seconds: float) -> bytes:
        peer, kind = self._hivemind.PeerID(peer_id), self._hivemind.BytesValue
        call = self._p2p.call_protobuf_handler(peer, handler, kind(value=request), kind)
        return bytes((await self._patiently(call, seconds)).value)

    async def _patiently(self, call: Any, seconds: float) -> Any:
        """The call's result; any way in which strangers or p2pd fail to give one becomes PeerAway."""
        try:
            async with asyncio.timeout(seconds):  # never wait_for: on Python 3.11 it can swallow being cancelled
                return await call
        except Exception as error:  # being away is normal: the caller asks others or asks later
            if not isinstance(error, self._hivemind.failures):  # hivemind takes it for impossible; strangers find ways
                log.warning("a call of the network failed: %r", error)
            raise PeerAway(f"{type(error).__name__}: {error}"[:200]) from error


def _readable(addresses: Iterable[Any]) -> Iterator[str]:
    """Those that can be written out, which reads them to their end: a relay may say anything of itself."""
    for address in addresses:
        with suppress(ValueError):
            yield str(address)


async def open_dht(
    options: SwarmOptions, identity: Identity, services: Services, *, port: int, relays: tuple[str, ...] = ()
) -> Dht:
    """Start p2pd, without bootstrap peers (given only dead ones it exits), and the DHT node; raises SwarmError.

    With `relays` it tells others to call it through these at once, instead of finding out for minutes that it must.
    """
    require_port(options.host, port)
    hivemind = load_hivemind()

    async def start() -> Any:
        try:
            return await limited(hivemind.P2P, services, options).create(
                host_maddrs=_listeners(options.host, port),
                identity_path=str(identity.path),
                check_if_identity_free=False,  # would start a second daemon
                nat_port_map=options.upnp,
                force_reachability="private" if relays else "public" if options.relay else None,
                use_auto_relay=bool(relays),
                trusted_relays=list(relays) or None,
                startup_timeout=START_S,
            )
        except (hivemind.P2PDaemonError, ValueError, OSError, EOFError) as error:
            raise SwarmError(
                "The network process does not start.", f"Look at the page Help, or run `waggle doctor`. It says: {error}"[:300]
            ) from error

    p2p = await (relay.started(hivemind, start, _end) if options.relay else start())
    try:
        control = p2p._client.control
        control._pending_calls, control._handler_tasks = OpenCalls(), Answering()
        async with asyncio.timeout(START_S):  # when it dies, what was asked of it waits for ever
            if not options.relay:
                await relay.refuse(hivemind, p2p)
            dht = Dht(hivemind, p2p, await _dht_node(hivemind, p2p, services))
            await _answer_reach(hivemind, p2p, dht)
        return dht
    except (hivemind.P2PDaemonError, OSError, EOFError) as error:  # it died between its start and ours; too late is an OSError
        await _end(p2p)
        raise SwarmError(
            "The network process ended while it started.", "Look at the page Help, or run `waggle doctor`."
        ) from error
    except BaseException:
        await _end(p2p)  # also when cancelled: p2pd must not outlive the attempt
        raise


async def _end(p2p: Any) -> None:
    """End p2pd, by force if it does not listen."""
    child, control = p2p._child, p2p._client.control
    try:
        async with asyncio.timeout(CONNECT_S):
            await p2p.shutdown()
    except TimeoutError:  # it ignores the polite signal
        with suppress(ProcessLookupError):  # it has ended just now
            child.kill()
        await child.wait()
    # Where p2pd went first these have failed over it, and nobody else asks them how they ended.
    await asyncio.gather(p2p._reader_task, control._read_task, control._write_task, return_exceptions=True)
    await child.stdout.read()  # to its end, or the pipe would outlive the loop


def _listeners(host: str, port: int) -> list[str]:
    """Where p2pd listens: everywhere by TCP and QUIC, by IPv6 where there is any; at an address of one's own by TCP alone."""
    if host != EVERYWHERE:
        return [f"/ip6/{host}/tcp/{port}" if ":" in host else f"/ip4/{host}/tcp/{port}"]
    return [f"/{kind}/{way}" for kind in ("ip4/0.0.0.0", "ip6/::") for way in (f"tcp/{port}", f"udp/{port}/quic-v1")]


async def _answer_reach(hivemind: types.SimpleNamespace, p2p: Any, dht: Dht) -> None:
    """Answer peers that ask whether they can be called."""
    callback = Callback(dht.peers)

    async def call_back(request: Any, context: Any) -> Any:
        if len(request.value) != 2:
            raise Refused
        reached = await callback.reaches(context.remote_id.to_bytes(), int.from_bytes(request.value, "big"))
        return hivemind.BytesValue(value=b"1" if reached else b"0")

    await p2p.add_protobuf_handler(REACH, call_back, hivemind.BytesValue)


async def _dht_node(hivemind: types.SimpleNamespace, p2p: Any, services: Services) -> Any:
    async def give_payload(request: Any, context: Any) -> Any:
        return hivemind.BytesValue(value=await services.payload(context.remote_id.to_bytes(), request.value))

    async def give_charter(request: Any, context: Any) -> Any:
        return hivemind.BytesValue(value=services.charter(request.value))

    async def give_greeting(request: Any, context: Any) -> Any:
        return hivemind.BytesValue(value=services.greeting())

    await p2p.add_protobuf_handler(PAYLOAD, give_payload, hivemind.BytesValue)
    await p2p.add_protobuf_handler(CHARTER, give_charter, hivemind.BytesValue)
    await p2p.add_protobuf_handler(GREETING, give_greeting, hivemind.BytesValue)
    guard = Guard(services.digest, member=services.member)
    node = await hivemind.DHTNode.create(
        p2p=p2p,
        node_id=hivemind.node_id_of(p2p.peer_id),
        record_validator=guard,
        cache_locally=False,  # caches serve last round's announcements in a third of the reads
        cache_nearest=0,
        cache_on_store=False,
        reuse_get_requests=False,
        num_workers=2,
        bucket_size=NEIGHBOURS,
        strict=False,  # with it, three seconds of clock skew lock a node out
    )
    node.protocol.storage, node.protocol.neighbours = hivemind.Storage(guard), Neighbours(node.protocol.is_there)
    node.blacklist = Resting()
    return node


def require_port(host: str, port: int) -> None:
    """Raise SwarmError when this port cannot be listened on: p2pd would share it in silence with another p2pd."""
    if port == 0:
        return
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that are just closing do not count
            probe.bind((host, port))
            probe.listen()
    except OSError as error:
        raise _port_error(host, port, error) from error


def _port_error(host: str, port: int, error: OSError) -> SwarmError:
    if error.errno == errno.EADDRINUSE:
        return SwarmError(f"Port {port} is already in use.", "Close the other program, or choose another port (0: any free one).")
    return SwarmError(f"{host}, port {port}, cannot be listened on: {error.strerror}.", "Choose another address or port.")
