"""The connections of one endpoint: dialled and accepted, at most two with a peer, bounded by address range."""

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from iroh import EndpointAddr, EndpointId, IrohError

from waggle.core.peer_id import PEER_ID_PREFIX, is_peer_id
from waggle.network.transport.iroh.admission import Admission
from waggle.network.transport.iroh.binding import PROTOCOL, whole
from waggle.network.transport.iroh.frames import MOST_SOCKETS, Peer

STREAMS = 16  # of a peer at a time, on one connection
WINDOW = 256 * 1024  # bytes that a peer may send on one connection before we read them
HANDSHAKE_S, DIAL_S = 5.0, 5.0
SILENT_S, LONGEST_SILENT_S, ROUND_TRIPS = 0.3, 3.0, 4.0  # without any datagram from a peer that has something to acknowledge
WATCH_S = 0.05  # between two looks whether a peer is silent
REST_S, LONGEST_REST_S = 5.0, 300.0  # in which a peer that did not answer is not dialled; doubled after each failure
HINTS, RESTS = 4096, 4096  # peers whose sockets, and whose rests, are remembered
AT_ONCE = 2  # connections with a peer: both sides may have dialled


class Away(Exception):
    """The peer does not answer. The text never quotes a stranger."""


class Connection:
    """One live connection."""

    def __init__(self, peer_id: bytes, link: Any, socket: str) -> None:
        self.peer_id, self.link, self.socket = peer_id, link, socket
        self.used_at = time.monotonic()

    @property
    def received(self) -> int:
        """Datagrams received so far."""
        return int(self.link.stats().udp_rx_datagrams)

    @property
    def silent_s(self) -> float:
        """How long the peer may be silent while it has something to acknowledge."""
        rtt_s = (self.link.rtt() or 0) / 1000
        return min(LONGEST_SILENT_S, SILENT_S + ROUND_TRIPS * rtt_s)

    def close(self) -> None:
        """Close it at once."""
        with suppress(IrohError):
            self.link.close(0, b"")


class Connections:
    """Belongs to one event loop. `serve` handles a stream that a peer opened."""

    def __init__(self, endpoint: Any, serve: Callable[[Connection, Any], Coroutine[Any, Any, None]]) -> None:
        self.counts: Counter[str] = Counter()
        self._endpoint, self._serve = endpoint, serve
        self._own = bytes(endpoint.id().to_bytes())
        self._admission = Admission()
        self._by_peer: dict[bytes, list[Connection]] = {}
        self._hints: OrderedDict[bytes, tuple[str, ...]] = OrderedDict()
        self._rests: OrderedDict[bytes, tuple[float, float]] = OrderedDict()  # until when (monotonic), how long
        self._dials: dict[bytes, asyncio.Task[Connection]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Run in the background until it ends."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def peers(self) -> tuple[Peer, ...]:
        """Who is connected."""
        newest = [connections[-1] for connections in self._by_peer.values()]
        return tuple(Peer(each.peer_id, each.socket, int(each.link.rtt() or 0)) for each in newest)

    def sockets_of(self, peer_id: bytes) -> tuple[str, ...]:
        """Where a peer may be dialled: the socket that it is connected from first."""
        connected = tuple(each.socket for each in reversed(self._by_peer.get(peer_id, [])))
        return tuple(dict.fromkeys((*connected, *self._hints.get(peer_id, ()))))[:MOST_SOCKETS]

    def hint(self, peer_id: bytes, sockets: tuple[str, ...]) -> None:
        """Remember where a peer may be dialled."""
        if not is_peer_id(peer_id) or peer_id.endswith(self._own) or not sockets:
            return
        before = self._hints.pop(peer_id, ())
        self._hints[peer_id] = tuple(dict.fromkeys((*sockets, *before)))[:MOST_SOCKETS]
        if len(self._hints) > HINTS:
            self._hints.popitem(last=False)

    async def reach(self, peer_id: bytes, seconds: float, *, insist: bool = False) -> Connection:
        """A connection with a peer, waiting for a dial at most so long; the dial goes on for others. Raises Away.

        A peer that did not answer rests, unless the caller insists: else every search would wait for the dead anew.
        """
        if connected := self._by_peer.get(peer_id):
            return connected[-1]
        if not insist and self._rests.get(peer_id, (0.0, 0.0))[0] > time.monotonic():
            raise Away("it was away just now")
        dial = self._dials.get(peer_id)
        if dial is None:
            dial = self._dials[peer_id] = self.spawn(self._dial(peer_id))
            dial.add_done_callback(lambda _task: self._dials.pop(peer_id, None))
        ended, _ = await asyncio.wait({dial}, timeout=seconds)
        if not ended:
            self.rest(peer_id)
            raise Away("it does not answer yet")
        return dial.result()

    async def watch(self, connection: Connection) -> None:
        """Return when the peer has been silent for too long since this call began, which must have sent it something.

        QUIC itself waits for half a minute. A live peer acknowledges within a round trip, however busy its program is.
        """
        before, since = connection.received, time.monotonic()
        while time.monotonic() - since < connection.silent_s:
            await asyncio.sleep(WATCH_S)
            now = connection.received
            if now != before:
                before, since = now, time.monotonic()

    def give_up(self, connection: Connection) -> None:
        """Close the connection of a peer that is silent, and let it rest."""
        self.counts["silent"] += 1
        connection.close()
        self._remove(connection)
        self.rest(connection.peer_id)

    def rest(self, peer_id: bytes) -> None:
        """Do not dial a peer for a while."""
        _, before = self._rests.pop(peer_id, (0.0, REST_S / 2))
        pause = min(LONGEST_REST_S, 2 * before)
        self._rests[peer_id] = time.monotonic() + pause, pause
        if len(self._rests) > RESTS:
            self._rests.popitem(last=False)

    def disconnect(self, peer_id: bytes) -> None:
        """Close all connections of a peer."""
        for connection in list(self._by_peer.get(peer_id, [])):
            connection.close()

    async def accept(self) -> None:
        """Admit and accept connections until the endpoint closes."""
        while (incoming := await whole(self._endpoint.accept_next())) is not None:
            self.counts["incoming"] += 1
            self.spawn(self._admit(incoming))

    async def _admit(self, incoming: Any) -> None:
        try:
            address = await incoming.remote_addr()
            if not address.is_ip():
                await incoming.ignore()
                return
            socket = str(address.addr)
            if self._admission.crowded and not await incoming.remote_addr_validated():
                self.counts["retried"] += 1
                await incoming.retry()
                return
            if self._admission.full or not self._admission.admits(socket):
                self.counts["refused"] += 1
                await incoming.ignore()
                return
            with self._admission.handshake(socket):
                async with asyncio.timeout(HANDSHAKE_S):
                    link = await whole(_accepted(incoming))
        except (IrohError, TimeoutError):
            self.counts["handshakes failed"] += 1
            return
        self._add(PEER_ID_PREFIX + link.remote_id().to_bytes(), link, socket)

    async def _dial(self, peer_id: bytes) -> Connection:
        sockets = self.sockets_of(peer_id)
        if not sockets:
            raise Away("no address of it is known")
        self.counts["dials"] += 1
        address = EndpointAddr(EndpointId.from_bytes(peer_id[len(PEER_ID_PREFIX) :]), None, list(sockets))
        try:
            async with asyncio.timeout(DIAL_S):
                link = await whole(self._endpoint.connect(address, PROTOCOL))
        except (IrohError, TimeoutError) as error:
            self.counts["dials failed"] += 1
            self.rest(peer_id)
            raise Away("it does not answer a dial") from error
        return self._add(peer_id, link, next((path.remote_addr for path in link.paths() if path.is_ip), sockets[0]))

    def _add(self, peer_id: bytes, link: Any, socket: str) -> Connection:
        link.set_max_concurrent_bi_streams(STREAMS)
        link.set_max_concurrent_uni_streams(0)
        link.set_receive_window(WINDOW)
        connection = Connection(peer_id, link, socket)
        connections = self._by_peer.setdefault(peer_id, [])
        connections.append(connection)
        self._rests.pop(peer_id, None)
        for excess in connections[:-AT_ONCE]:
            excess.close()
        self.spawn(self._hold(connection))
        self.spawn(self._refuse_one_way(connection))
        return connection

    async def _hold(self, connection: Connection) -> None:
        """Serve a connection until it ends."""
        with self._admission.connection(connection.socket):
            try:
                while True:
                    stream = await whole(connection.link.accept_bi())
                    connection.used_at = time.monotonic()
                    self.spawn(self._serve(connection, stream))
            except IrohError:
                pass  # it ended
            finally:
                self._remove(connection)

    async def _refuse_one_way(self, connection: Connection) -> None:
        """Stop one-way streams. We use none, but the handshake grants a hundred of 1.25 MB, and the binding cannot say less."""
        with suppress(IrohError):
            while True:
                stream = await whole(connection.link.accept_uni())
                await stream.stop(0)
                self.counts["one-way streams"] += 1

    def _remove(self, connection: Connection) -> None:
        connections = self._by_peer.get(connection.peer_id, [])
        if connection in connections:
            connections.remove(connection)
        if not connections:
            self._by_peer.pop(connection.peer_id, None)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and isinstance(task.exception(), Exception):
            self.counts[f"ended by {type(task.exception()).__name__}"] += 1


async def _accepted(incoming: Any) -> Any:
    return await (await incoming.accept()).connect()
