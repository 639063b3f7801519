"""The network through hivemind: the directory in its DHT, and calls to peers through p2pd (`daemon.py`)."""

import asyncio
import math
import time
import types
from contextlib import suppress
from typing import Any

from waggle.core.errors import SwarmError
from waggle.network.identity.keys import Identity
from waggle.network.messages.addresses import peer_of
from waggle.network.messages.consent import Holder
from waggle.network.messages.options import SwarmOptions
from waggle.network.messages.rollout_record import MAX_BLOB
from waggle.network.transport.hivemind import relay
from waggle.network.transport.hivemind.call_limits import CallRefused
from waggle.network.transport.hivemind.daemon import CONNECT_S, Daemon, start_daemon
from waggle.network.transport.hivemind.dht_validator import AnnouncementValidator, unpacked
from waggle.network.transport.hivemind.liveness import NeighbourLiveness, SearchBackoff
from waggle.network.transport.hivemind.patches import ANNOUNCEMENTS, Announcements, load_hivemind
from waggle.network.transport.hivemind.presence_exchange import StoredStatements
from waggle.network.transport.hivemind.reachability import DialBack
from waggle.network.transport.interface import PeerAway, Pong, Services

# Names of the handlers that peers call. Request and answer are bytes; an empty answer means "not here".
PAYLOAD = "waggle/payload/1"  # request: a sha256, and in a private swarm a certificate behind it
CHARTER = "waggle/charter/1"  # request: a sha256
HANDSHAKE = "waggle/greeting"  # request: nothing; the answer is a handshake
PRESENCE = "waggle/presence/1"  # request: a statement that we run; answer: one of another process with our identity, or nothing
REACH = "waggle/reach/1"  # request: a port in two bytes; answer: b"1" if a call to it at the caller's address succeeded, or b"0"
CALL_S = 10.0  # for a store, with everything that hivemind retries in it
READ_S = 8.0  # for a read: a light client waits ten seconds for a gateway that reads for it
PING_S = 3.0
START_S = 30.0  # for the DHT node to start, once p2pd runs
NEIGHBOURS = 10  # of a key, asked in every search: hivemind's default of 20 costs twice as much, and a value has five replicas


class HivemindNetwork:
    """The directory and the peers, as long as one daemon lives. Implements `Network`."""

    replicas = 5  # of a shard, which is hivemind's default

    def __init__(self, hivemind: types.SimpleNamespace, daemon: Daemon, node: Any) -> None:
        self.daemon = daemon
        self._hivemind = hivemind
        self._node = node

    async def announce(self, key: str, peer_id: bytes, signed: bytes, expires_at: float) -> bool:
        """Put a signed announcement into the directory. True says little: a node that is alone stores it at itself."""
        store = self._node.store(key, signed, expires_at, subkey=peer_id, num_workers=8)
        return bool(await self.daemon.attempt(store, CALL_S))

    async def read_directory(self, key: str) -> dict[bytes, bytes]:
        """The signed announcements of one shard, by peer id. The validator has checked each of them.

        After READ_S it returns what it has by then: a few replicas that never answer hide nobody whom the others know.
        Raises PeerAway if that is nothing.
        """
        announced: Announcements = {}
        before = ANNOUNCEMENTS.set(announced)
        try:
            # `latest` merges several replicas, because each may be out of date.
            answer = await self.daemon.attempt(self._node.get(key, latest=True, num_workers=2), READ_S)
        except PeerAway:
            partial = self._stored_here(key) | {peer_id: signed for peer_id, (signed, _) in announced.items()}
            if not partial:
                raise
            return partial
        finally:
            ANNOUNCEMENTS.reset(before)
        return {} if answer is None else {peer_id: entry.value for peer_id, entry in answer.value.items()}

    def _stored_here(self, key: str) -> dict[bytes, bytes]:
        """What this node stores under a key for the swarm."""
        stored = self._node.protocol.storage.get(self._hivemind.DHTID.generate(key))
        entries = stored.value.items() if stored is not None else ()
        return {peer_id: unpacked(entry.value) or b"" for peer_id, entry in entries}

    async def upload(self, sha256: bytes, blob: bytes) -> tuple[Holder, ...]:
        """Do nothing: a node that peers can call serves its payloads itself."""
        return ()

    async def pull(self, peer_id: bytes, sha256: bytes, seconds: float, certificate: bytes = b"") -> bytes:
        """The bytes that a peer gives for this hash, not yet compared with it; b"" if it has none. Raises PeerAway."""
        return await self.daemon.pull(PAYLOAD, peer_id, sha256 + certificate, MAX_BLOB, seconds)

    async def fetch_handshake(self, peer_id: bytes) -> bytes:
        """A peer's handshake, not yet decoded. Raises PeerAway."""
        return await self.daemon.call(HANDSHAKE, peer_id, b"", PING_S)

    async def fetch_charter(self, peer_id: bytes, sha256: bytes) -> bytes:
        """The charter document that a peer gives for this hash, not yet compared with it. Raises PeerAway."""
        return await self.daemon.call(CHARTER, peer_id, sha256, CONNECT_S)

    async def state_presence(self, peer_id: bytes, statement: bytes) -> bytes:
        """Leave a statement of presence with a peer; return the one of another process with our identity. Raises PeerAway."""
        return await self.daemon.call(PRESENCE, peer_id, statement, PING_S)

    async def connect(self, address: str) -> Pong:
        """Connect to a multiaddress and ping the DHT node there. Raises PeerAway."""
        await self.daemon.connect(address)
        return await self.ping(peer_of(address))

    async def find_neighbours(self) -> None:
        """Search for our own neighbours in the DHT, so that they know us and we know them. Raises PeerAway."""
        await self.daemon.attempt(self._node.find_nearest_nodes([self._node.node_id]), CALL_S)

    async def ping(self, peer_id: bytes) -> Pong:
        """Ping a DHT node and read its clock. Raises PeerAway."""
        protocol, peer = self._node.protocol, self._hivemind.PeerID(peer_id)
        request = self._hivemind.dht_pb2.PingRequest(peer=protocol.node_info, validate=False)
        sent_at, started = time.time(), time.perf_counter()
        response = await self.daemon.attempt(protocol.get_stub(peer).rpc_ping(request, timeout=PING_S), PING_S)
        seconds = time.perf_counter() - started
        if len(response.peer.node_id) != 20 or not math.isfinite(response.dht_time):
            raise PeerAway("not a DHT node")
        node_id = self._hivemind.DHTID.from_bytes(response.peer.node_id)
        await protocol.update_routing_table(node_id, peer, responded=True)
        # The peer reads its clock halfway through the round trip, so to say.
        return Pong(delay_ms=seconds * 1000, skew_s=response.dht_time - (sent_at + seconds / 2))

    async def addresses(self) -> list[str]:
        """Our own multiaddresses, those that other computers can use first. Raises PeerAway."""
        return await self.daemon.addresses()

    async def close(self) -> None:
        """Shut the DHT node down and end p2pd, by force if it does not react."""
        with suppress(PeerAway):  # handlers cannot be removed from a daemon that has ended
            if self.daemon.p2p._child.returncode is None:
                await self.daemon.attempt(self._node.shutdown(), CONNECT_S)
        await self.daemon.close()


async def open_network(
    options: SwarmOptions, identity: Identity, services: Services, *, port: int, relays: tuple[str, ...] = ()
) -> HivemindNetwork:
    """Start p2pd and the DHT node. Raises SwarmError. `relays` are explained at `start_daemon`."""
    hivemind = load_hivemind()
    daemon = await start_daemon(options, identity, services, port=port, relays=relays)
    try:
        async with asyncio.timeout(START_S):  # if p2pd ends now, what was asked of it waits for ever
            if not options.relay:
                await relay.disable(hivemind, daemon.p2p)
            node = await _start_dht_node(hivemind, daemon.p2p, services)
            await _serve_reach(hivemind, daemon)
            await _serve_presence(hivemind, daemon)
        return HivemindNetwork(hivemind, daemon, node)
    except (hivemind.P2PDaemonError, OSError, EOFError) as error:  # p2pd ended meanwhile; a TimeoutError is an OSError
        await daemon.close()
        raise SwarmError(
            "The network process ended while it started.", "Look at the page Help, or run `waggle doctor`."
        ) from error
    except BaseException:
        await daemon.close()  # after a cancellation too: p2pd must not outlive the attempt
        raise


async def is_reached_by(daemon: Daemon, peer_id: bytes, port: int) -> bool:
    """Whether a peer that we called can call us too, at this port. Raises PeerAway if it does not say."""
    answer = await daemon.call(REACH, peer_id, port.to_bytes(2, "big"), CONNECT_S)
    if answer not in (b"0", b"1"):
        raise PeerAway("no answer to the question")
    return answer == b"1"


async def _serve_reach(hivemind: types.SimpleNamespace, daemon: Daemon) -> None:
    """Answer peers that ask whether they can be called."""
    dial_back = DialBack(daemon.peers)

    async def answer(request: Any, context: Any) -> Any:
        if len(request.value) != 2:
            raise CallRefused
        reached = await dial_back.reaches(context.remote_id.to_bytes(), int.from_bytes(request.value, "big"))
        return hivemind.BytesValue(value=b"1" if reached else b"0")

    await daemon.p2p.add_protobuf_handler(REACH, answer, hivemind.BytesValue)


async def _serve_presence(hivemind: types.SimpleNamespace, daemon: Daemon) -> None:
    """Store statements of presence for peers."""
    stored = StoredStatements()

    async def answer(request: Any, context: Any) -> Any:
        return hivemind.BytesValue(value=stored.exchange(context.remote_id.to_bytes(), request.value))

    await daemon.p2p.add_protobuf_handler(PRESENCE, answer, hivemind.BytesValue)


async def _start_dht_node(hivemind: types.SimpleNamespace, p2p: Any, services: Services) -> Any:
    async def give_payload(request: Any, context: Any) -> Any:
        return hivemind.BytesValue(value=await services.payload(context.remote_id.to_bytes(), request.value))

    async def give_charter(request: Any, context: Any) -> Any:
        return hivemind.BytesValue(value=services.charter(request.value))

    async def give_handshake(request: Any, context: Any) -> Any:
        return hivemind.BytesValue(value=services.handshake())

    await p2p.add_protobuf_handler(PAYLOAD, give_payload, hivemind.BytesValue)
    await p2p.add_protobuf_handler(CHARTER, give_charter, hivemind.BytesValue)
    await p2p.add_protobuf_handler(HANDSHAKE, give_handshake, hivemind.BytesValue)
    validator = AnnouncementValidator(services.digest, member=services.member, useful=services.useful)
    node = await hivemind.DHTNode.create(
        p2p=p2p,
        node_id=hivemind.node_id_of(p2p.peer_id),
        record_validator=validator,
        cache_locally=False,  # with caches, a third of the reads returned announcements of the previous round
        cache_nearest=0,
        cache_on_store=False,
        reuse_get_requests=False,
        num_workers=2,
        bucket_size=NEIGHBOURS,
        strict=False,  # with it, three seconds of clock skew lock a node out
    )
    node.protocol.storage, node.protocol.neighbours = hivemind.Storage(validator), NeighbourLiveness(node.protocol.is_alive)
    node.blacklist = SearchBackoff()
    return node
