"""The parts of hivemind that Waggle uses, patched so that nothing a stranger sends can stop or fill them.

Only submodules are imported, because hivemind's own `__init__` loads torch and forks. It works on systems without fork and
uvloop. Importing this file does not import hivemind; `load_hivemind` does.
"""

import asyncio
import contextlib
import copy
import functools
import importlib
import importlib.machinery
import importlib.util
import itertools
import logging
import os
import sys
import types
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from waggle.core.errors import SwarmError
from waggle.core.message import Message
from waggle.core.peer_id import is_peer_id
from waggle.core.system.machine import shared_memory_fault
from waggle.network.messages import announcement
from waggle.network.transport.hivemind import dht_validator

# Bytes of one whole shard as a replica sends it; 120 bytes of each entry are its msgpack framing, peer id and expiry, at most.
MAX_VALUE = dht_validator.SHARD_CAP * (announcement.MAX_BYTES + 120)
CALL_ID = 16  # bytes
MOST_NEIGHBOURS = 20  # of a key, in one answer: hivemind's own nodes name that many
Announcements = dict[bytes, tuple[bytes, float]]  # peer id -> its signed announcement, and when it expires
ANNOUNCEMENTS: ContextVar[Announcements | None] = ContextVar("what the current read has received so far", default=None)
MOST_WAITING = 512  # streams that p2pd may pass on before we take the first of them
SPARE = 64  # times of replaced entries that a dictionary may keep beside those of its entries


@functools.cache
def load_hivemind() -> types.SimpleNamespace:
    """hivemind's classes, patched. Raises SwarmError if hivemind is not installed, or cannot work here."""
    if fault := shared_memory_fault():
        raise SwarmError(
            Message("This computer's shared memory, /dev/shm, cannot be used: %1.", fault),
            "Make it writable; in a container, by its options. To train alone meanwhile, set swarm.solo to true.",
        )
    try:
        _install_stub_packages()
        from google.protobuf.message import DecodeError
        from google.protobuf.wrappers_pb2 import BytesValue
        from hivemind.dht import storage
        from hivemind.dht.node import DHTNode
        from hivemind.dht.protocol import DHTProtocol
        from hivemind.dht.routing import DHTID
        from hivemind.dht.storage import DHTLocalStorage, DictionaryDHTValue
        from hivemind.dht.validation import DHTRecord
        from hivemind.p2p import P2P, PeerID, p2p_daemon
        from hivemind.p2p.p2p_daemon_bindings import control
        from hivemind.p2p.p2p_daemon_bindings.datastructures import PeerInfo
        from hivemind.p2p.p2p_daemon_bindings.utils import P2PDaemonError, P2PHandlerError
        from hivemind.proto import dht_pb2, p2pd_pb2
        from hivemind.utils.multiaddr import Multiaddr
        from hivemind.utils.multiaddr.codecs import cid
        from hivemind.utils.serializer import MSGPackSerializer
    except ImportError as error:
        raise SwarmError("This computer cannot join a swarm: its network part is missing.", f"({error})") from error
    _bound_values(DHTProtocol, storage, MSGPackSerializer)
    _validate_entries_separately(DHTProtocol, DHTRecord, DictionaryDHTValue)
    _bound_neighbours(DHTProtocol)
    _require_derived_ids(DHTProtocol, node_id_of := lambda peer: DHTID.generate(peer.to_bytes()))
    _skip_unreadable_addresses(control, PeerInfo, PeerID, Multiaddr)
    _survive_malformed_messages(control, DecodeError, P2PDaemonError)
    _survive_malformed_lines(P2P)
    _survive_malformed_streams(control, (DecodeError, P2PDaemonError))
    cid.PROTO_NAME_TO_CIDv1_CODEC.clear()  # write a relay's peer id in base58: p2pd cannot read it as a CID
    p2p_daemon.loglevel = "ERROR"  # of p2pd, which below that logs what strangers send
    # ValueError: an address from a stranger that hivemind cannot read
    failures = (P2PDaemonError, P2PHandlerError, DecodeError, TimeoutError, OSError, EOFError, ValueError)
    return types.SimpleNamespace(
        BytesValue=BytesValue, DHTNode=DHTNode, DHTID=DHTID, P2P=P2P, PeerID=PeerID, P2PDaemonError=P2PDaemonError,
        P2PContext=p2p_daemon.P2PContext, dht_pb2=dht_pb2, Multiaddr=Multiaddr, failures=failures, node_id_of=node_id_of,
        messages=_messages(control, p2pd_pb2, DecodeError, P2PHandlerError),
        serializer=DHTProtocol.serializer, Storage=_storage_class(DHTLocalStorage, DictionaryDHTValue),
    )  # fmt: skip


def _bound_values(protocol: Any, storage: Any, serializer: Any) -> None:
    """Decode no DHT value that is longer than a shard, or more than a dictionary of plain entries.

    hivemind decodes before it asks the validator, in calls and in answers, and recursively: a few hundred nested tuples or
    dictionaries overflow the stack.
    """
    dictionary_code = serializer._ext_types[storage.DictionaryDHTValue]

    class FlatSerializer(serializer):  # type: ignore[misc]
        @classmethod
        def _decode_ext_types(cls, type_code: int, data: bytes) -> Any:
            raise ValueError("nodes store no nested values")

    class BoundedSerializer(FlatSerializer):
        @classmethod
        def loads(cls, buffer: bytes) -> Any:
            if len(buffer) > MAX_VALUE:
                raise ValueError("too large a value")
            return super().loads(buffer)

        @classmethod
        def _decode_ext_types(cls, type_code: int, data: bytes) -> Any:
            if type_code == dictionary_code:
                return storage.DictionaryDHTValue.unpackb(data)  # with `storage`'s serializer, which is flat
            return super()._decode_ext_types(type_code, data)

    storage.MSGPackSerializer, protocol.serializer = FlatSerializer, BoundedSerializer


def _validate_entries_separately(protocol: Any, record: Any, dictionary_of: Any) -> None:
    """Validate each entry of an answer alone: an invalid one hides no others, and no claim about the whole answer counts.

    In hivemind, a search ends with the first answer that claims to be valid for ever, and fails on an expiry that is NaN.
    """
    find = protocol.call_find

    def validate(self: Any, key: bytes, dictionary: Any) -> bool:
        if len(dictionary) > dht_validator.SHARD_CAP:  # no honest node stores so many
            return False
        validator = self.record_validator
        most_forged = validator.forged + announcement.MOST_FORGED
        with dictionary.freeze():
            for subkey, (value, expiration) in list(dictionary.items()):
                if not validator.validate(record(key, self.serializer.dumps(subkey), value, expiration)):
                    del dictionary[subkey]
                if validator.forged > most_forged:
                    return False
        return bool(dictionary)

    async def call_find(self: Any, peer: Any, keys: Any) -> Any:
        answers = await find(self, peer, keys)
        for key, (value, nearest) in (answers or {}).items():
            if value is not None:
                entries, announcements = dictionary_of(), ANNOUNCEMENTS.get()
                for subkey, (blob, expiration) in value.value.items():
                    entries.store(subkey, blob, expiration)
                    signed = dht_validator.unpacked(blob)
                    if announcements is not None and signed and announcements.get(subkey, (b"", 0.0))[1] < expiration:
                        announcements[subkey] = signed, expiration
                answers[key] = type(value)(entries, entries.latest_expiration_time), nearest
        return answers

    protocol._validate_dictionary, protocol.call_find = validate, call_find


def _storage_class(local: Any, dictionary: Any) -> Any:
    """A storage that keeps only entries for which the validator has room. A later expiry replaces an entry."""

    class Storage(local):  # type: ignore[misc]
        def __init__(self, validator: dht_validator.AnnouncementValidator) -> None:
            super().__init__()
            self._validator = validator

        def get(self, key: Any) -> Any:
            """A copy, because hivemind adds the answers of others to what it reads here."""
            stored = super().get(key)
            if stored is None:
                return None
            stored.value.items()  # removes expired entries, which every copy would have to skip
            copied = copy.copy(stored.value)
            copied.data, copied.key_to_heap, copied.expiration_heap = map(
                copy.copy, (copied.data, copied.key_to_heap, copied.expiration_heap)
            )
            return type(stored)(copied, stored.expiration_time)

        def store_subkey(self, key: Any, subkey: Any, value: bytes, expiration: float) -> bool:
            dictionary_here = super().get(key)
            before = dictionary_here and dictionary_here.value.get(subkey)
            if before and before.expiration_time >= expiration:
                return False
            if not self._validator.has_room(key.to_bytes(), subkey, value, expiration):
                return False
            entries = dictionary_here.value if dictionary_here else dictionary()
            if expiration > entries.latest_expiration_time:
                self.store(key, entries, expiration)
            stored = entries.store(subkey, value, expiration)
            _drop_replaced_times(self)
            _drop_replaced_times(entries)
            return bool(stored)

    return Storage


def _drop_replaced_times(timed: Any) -> None:
    """Drop the times of replaced entries. hivemind keeps each in its heap until it has passed, and then searches all of them."""
    if len(timed.expiration_heap) > 2 * len(timed.data) + SPARE:
        timed.expiration_heap = sorted(timed.key_to_heap.values())


def _require_derived_ids(protocol: Any, node_id_of: Callable[[Any], Any]) -> None:
    """Allow a peer only the node id that follows from its peer id, check named neighbours, and bound the routing table's buckets.

    hivemind accepts any id from anybody and keeps it for ever. It also searches all stored values for each new id, to hand
    them over. We need no handing over: announcements are renewed long before they expire, and reach a newcomer then.
    """
    find = protocol.call_find

    async def update_routing_table(self: Any, node_id: Any, peer_id: Any, responded: bool = True) -> None:
        own, table = node_id_of(peer_id), self.routing_table
        if node_id not in (None, own):
            return
        bucket = table.buckets[table.get_bucket_index(own)]
        if not responded:
            bucket.nodes_requested_for_ping.discard(own)
            if own in table:
                del table[own]
        elif node_id is not None:
            if own not in table and len(bucket.replacement_nodes) >= self.bucket_size:
                del table[next(iter(bucket.replacement_nodes))]
            longest_unseen = table.add_or_update_node(own, peer_id)
            if longest_unseen is not None:
                task = asyncio.create_task(self.is_alive(longest_unseen[1]))
                pending.add(task)
                task.add_done_callback(pending.discard)

    async def is_alive(self: Any, peer: Any) -> bool:
        """Ask with a find, because hivemind's ping raises for some answers of strangers. The answer's neighbours do not count."""
        return await find(self, peer, [self.node_id]) is not None

    async def call_find(self: Any, peer: Any, keys: Any) -> Any:
        answers = await find(self, peer, keys)
        for key, (value, nearest) in (answers or {}).items():
            # Our own id would end a search.
            others = ((node_id, each) for node_id, each in nearest.items() if node_id != self.node_id)
            derived = ((node_id, each) for node_id, each in others if node_id == node_id_of(each))
            named = dict(itertools.islice(derived, self.bucket_size))
            unknown = [each for node_id, each in named.items() if node_id not in self.routing_table]
            dead = {*unknown} - await self.neighbours.alive(peer.to_bytes(), unknown)
            answers[key] = value, {node_id: each for node_id, each in named.items() if each not in dead}
        return answers

    pending: set[asyncio.Task[Any]] = set()
    protocol.update_routing_table, protocol.call_find, protocol.is_alive = update_routing_table, call_find, is_alive


def _bound_neighbours(protocol: Any) -> None:
    """Remove neighbours from an answer that are more than hivemind's own nodes name, or have no valid peer id.

    hivemind writes each of them in base58 first, in a time that grows with the square of its length: what fits into one message
    would block the event loop for hours.
    """
    protocol._collect_rpc_handlers()
    stub = protocol._stub_type
    ask = stub.rpc_find

    async def rpc_find(self: Any, request: Any, timeout: float | None = None) -> Any:
        answer = await ask(self, request, timeout=timeout)
        if len(answer.results) != len(request.keys):
            raise ValueError("an answer to something else")
        return with_few_neighbours(answer)

    stub.rpc_find = rpc_find


def with_few_neighbours(answer: Any) -> Any:
    """The FindResponse without excess neighbours and without those that have no valid peer id."""
    for result in answer.results:
        named = list(itertools.islice(zip(result.nearest_node_ids, result.nearest_peer_ids, strict=False), MOST_NEIGHBOURS))
        named = [(node_id, peer_id) for node_id, peer_id in named if is_peer_id(peer_id)]
        result.nearest_node_ids[:] = [node_id for node_id, _ in named]
        result.nearest_peer_ids[:] = [peer_id for _, peer_id in named]
    return answer


def _skip_unreadable_addresses(control: Any, info: Any, peer_id: Any, address: Any) -> None:
    """Skip an address that hivemind cannot read: in hivemind, one such connection makes the list of all peers fail."""

    class TolerantPeerInfo(info):  # type: ignore[misc]
        @classmethod
        def from_protobuf(cls, message: Any) -> Any:
            peers = []
            for each in message.addrs:
                with suppress(ValueError):  # str: only that parses all of it
                    peers.append(address(str(address(each))))
            return info(peer_id(message.id), peers)

    control.PeerInfo = TolerantPeerInfo


def _survive_malformed_messages(control: Any, unreadable: type[Exception], error: type[Exception]) -> None:
    """Skip a message that cannot be decoded, and refuse an answer without content.

    p2pd forwards messages that Python's stricter decoder refuses. In hivemind one task reads the messages of all calls; such a
    message ends it, and every call after that hangs.
    """
    read, client = control.read_pbmsg_safe, control.ControlClient
    passed_on, call = control.p2pd_pb.PersistentConnectionResponse, client.call_unary_handler

    async def read_next(reader: Any, message: Any) -> None:
        if not isinstance(message, passed_on):
            await read(reader, message)
            return
        while len(message.callId) != CALL_ID:
            message.Clear()
            with suppress(unreadable):  # all its bytes were read, so the next message follows
                await read(reader, message)

    async def call_unary_handler(self: Any, *arguments: Any) -> Any:
        answer = await call(self, *arguments)
        if answer is None:
            raise error("a message without an answer")
        return answer

    control.read_pbmsg_safe, client.call_unary_handler = read_next, call_unary_handler


def _survive_malformed_streams(control: Any, unreadable: tuple[type[Exception], ...]) -> None:
    """Drop a stream that hivemind cannot describe, or whose handler was just removed: asyncio would report an error of ours.

    p2pd resets a stream for which there is no room in the queue to us, whoever opened it: a stranger can fill a short one.
    """
    handle = control.ControlClient._handler
    failures: tuple[type[Exception], ...] = (OSError, EOFError, ValueError, *unreadable)

    async def handle_stream(self: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handle(self, reader, writer)
        except failures:  # p2pd has ended, or a stranger's address has no text
            writer.transport.abort()

    @contextlib.asynccontextmanager
    async def listen(self: Any) -> AsyncIterator[Any]:
        path = self.listen_maddr.value_for_protocol(control.protocols.P_UNIX)
        async with await asyncio.start_unix_server(self._handler, path, backlog=MOST_WAITING):
            yield self

    control.ControlClient._handler, control.ControlClient.listen = handle_stream, listen


def _messages(control: Any, proto: Any, unreadable: type[Exception], refusal: type[Exception]) -> types.SimpleNamespace:
    """p2pd's messages: those that open a stream, and those that a call and its answer consist of."""
    return types.SimpleNamespace(
        Command=proto.Request, Opening=proto.StreamOpenRequest, Result=proto.Response, Request=proto.PersistentConnectionRequest,
        Call=proto.CallUnaryRequest, Answer=proto.CallUnaryResponse, write=control.write_pbmsg, read=control.read_pbmsg_safe,
        raise_if_failed=control.raise_if_failed, unreadable=unreadable, Refusal=refusal,
    )  # fmt: skip


def _survive_malformed_lines(p2p: Any) -> None:
    """Keep reading p2pd's output after a line that cannot be read: p2pd blocks for ever once nobody reads its output."""
    read = p2p._read_outputs

    async def read_outputs(self: Any, ready: Any) -> None:
        while True:
            # A line that is too long, or its rest, which may begin like the line with which p2pd says that it is ready.
            with suppress(ValueError, asyncio.InvalidStateError):
                await read(self, ready)
                return

    p2p._read_outputs = read_outputs


class OutgoingCalls(dict[Any, Any]):
    """Calls that wait for their answer. A cancelled call counts as gone at once, before its task has ended.

    In hivemind, an answer that comes in between ends the task that reads all answers, and every later call hangs.
    """

    def __contains__(self, call: object) -> bool:
        return super().__contains__(call) and not self[call].done()


REEXPORTED = (  # names that submodules of hivemind import from `hivemind.utils`
    ("logging", ("get_logger", "use_hivemind_log_handler")),
    ("serializer", ("MSGPackSerializer", "SerializerBase")),
    (
        "timed_storage",
        ("DHTExpiration", "ValueWithExpiration", "get_dht_time", "MAX_DHT_TIME_DISCREPANCY_SECONDS", "TimedStorage"),
    ),
    ("asyncio", ("as_aiter", "amap_in_executor", "switch_to_uvloop", "enter_asynchronously")),
)


def _install_stub_packages() -> None:
    """Install packages named hivemind, hivemind.utils and hivemind.dht whose `__init__` never runs. Raises ImportError."""
    if "hivemind" in sys.modules:
        return
    specification = importlib.util.find_spec("hivemind")
    if specification is None or not specification.submodule_search_locations:
        raise ImportError("hivemind is not installed")
    root = next(iter(specification.submodule_search_locations))
    stub = types.ModuleType("uvloop")  # hivemind.utils.asyncio imports it for a function that we never call
    stub.install = lambda: None  # type: ignore[attr-defined]
    is_stub = sys.modules.setdefault("uvloop", stub) is stub
    try:
        _package("hivemind", root)
        utils = _package("hivemind.utils", root)
        for module, names in REEXPORTED:
            loaded = importlib.import_module(f"hivemind.utils.{module}")
            for name in names:
                setattr(utils, name, getattr(loaded, name))
        _package("hivemind.dht", root)
    finally:
        if is_stub:
            del sys.modules["uvloop"]
    utils.use_hivemind_log_handler("nowhere")  # its lines go to the root logger, as all others do
    logging.getLogger("hivemind").setLevel(logging.ERROR)  # it warns about faults of strangers


def _package(name: str, root: str) -> Any:
    module = types.ModuleType(name)
    module.__path__ = [os.path.join(root, *name.split(".")[1:])]
    module.__package__ = name
    module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)  # so that find_spec finds it
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, module)
    return module
