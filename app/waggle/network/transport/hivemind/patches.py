"""hivemind's parts, submodules only (its own `__init__` loads torch and forks), and held to what strangers may send.

Works where fork and uvloop do not exist. Importing this file imports nothing.
"""

import asyncio
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
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from waggle.core.errors import SwarmError
from waggle.core.peer_id import is_peer_id
from waggle.network.messages import announcement
from waggle.network.transport.hivemind import dht_validator

MAX_VALUE = dht_validator.SHARD_CAP * (announcement.MAX_BYTES + 120)  # bytes: one whole shard, as a replica passes it on
CALL_ID = 16  # bytes
MOST_NEIGHBOURS = 20  # of a key, in one answer: hivemind's own nodes name so many
Announcements = dict[bytes, tuple[bytes, float]]  # peer id -> its signed announcement, and until when that holds
ANNOUNCEMENTS: ContextVar[Announcements | None] = ContextVar("what a reader has heard of so far", default=None)
SPARE = 64  # times of entries that were replaced, beside one for each that is there


@functools.cache
def load_hivemind() -> types.SimpleNamespace:
    """The parts of hivemind that are used here. Raises SwarmError where this system has no hivemind."""
    try:
        _shim()
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
        from hivemind.proto import dht_pb2
        from hivemind.utils.multiaddr import Multiaddr
        from hivemind.utils.multiaddr.codecs import cid
        from hivemind.utils.serializer import MSGPackSerializer
    except ImportError as error:
        raise SwarmError("This computer cannot join a swarm: its network part is missing.", f"({error})") from error
    _bound(DHTProtocol, storage, MSGPackSerializer)
    _believe_one_by_one(DHTProtocol, DHTRecord, DictionaryDHTValue)
    _read_few_neighbours(DHTProtocol)
    _hold_to_own_ids(DHTProtocol, node_id_of := lambda peer: DHTID.generate(peer.to_bytes()))
    _read_addresses_one_by_one(control, PeerInfo, PeerID, Multiaddr)
    _outlive_messages(control, DecodeError, P2PDaemonError)
    _outlive_lines(P2P)
    cid.PROTO_NAME_TO_CIDv1_CODEC.clear()  # a relay's peer id is written as it is: p2pd reads it in no other way
    p2p_daemon.loglevel = "ERROR"  # for p2pd, which else writes down what strangers send; what is less is told nobody anyway
    # ValueError: what a stranger's address may be that hivemind cannot read
    failures = (P2PDaemonError, P2PHandlerError, DecodeError, TimeoutError, OSError, EOFError, ValueError)
    return types.SimpleNamespace(
        BytesValue=BytesValue, DHTNode=DHTNode, DHTID=DHTID, P2P=P2P, PeerID=PeerID, P2PDaemonError=P2PDaemonError,
        dht_pb2=dht_pb2, Multiaddr=Multiaddr, failures=failures, node_id_of=node_id_of,
        serializer=DHTProtocol.serializer, Storage=_storage(DHTLocalStorage, DictionaryDHTValue),
    )  # fmt: skip


def _bound(protocol: Any, storage: Any, serializer: Any) -> None:
    """Let the DHT unpack no value longer than a shard, nor one that is more than a dictionary of plain entries.

    hivemind unpacks before it asks the guard, in calls and in replies. It begins anew for each tuple or dictionary in another:
    a few hundred of them, one in the other, take more of the stack than the process has.
    """
    dictionary_code = serializer._ext_types[storage.DictionaryDHTValue]

    class Plain(serializer):  # type: ignore[misc]
        @classmethod
        def _decode_ext_types(cls, type_code: int, data: bytes) -> Any:
            raise ValueError("nothing that a node stores is nested so")

    class Bounded(Plain):
        @classmethod
        def loads(cls, buffer: bytes) -> Any:
            if len(buffer) > MAX_VALUE:
                raise ValueError("too large a value")
            return super().loads(buffer)

        @classmethod
        def _decode_ext_types(cls, type_code: int, data: bytes) -> Any:
            if type_code == dictionary_code:
                return storage.DictionaryDHTValue.unpackb(data)  # by what `storage` calls its serializer
            return super()._decode_ext_types(type_code, data)

    storage.MSGPackSerializer, protocol.serializer = Plain, Bounded


def _believe_one_by_one(protocol: Any, record: Any, dictionary_of: Any) -> None:
    """Let one entry that is refused hide none of the others that come with it, and nothing be believed of all of them together.

    A search ends with the first answer that says it lasts for ever, and on a time that is no number it breaks off.
    """
    find = protocol.call_find

    def validate(self: Any, key: bytes, dictionary: Any) -> bool:
        if len(dictionary) > dht_validator.SHARD_CAP:  # nobody honest holds so many
            return False
        watch = self.record_validator
        enough = watch.forged + announcement.MOST_FORGED
        with dictionary.freeze():
            for subkey, (value, expiration) in list(dictionary.items()):
                if not watch.validate(record(key, self.serializer.dumps(subkey), value, expiration)):
                    del dictionary[subkey]
                if watch.forged > enough:
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


def _storage(local: Any, dictionary: Any) -> Any:
    """hivemind's storage for a guard: it keeps only what the guard has room for, each entry until one comes that lasts longer."""

    class Storage(local):  # type: ignore[misc]
        def __init__(self, watch: dht_validator.Guard) -> None:
            super().__init__()
            self._watch = watch

        def get(self, key: Any) -> Any:
            """A copy: hivemind puts into what it reads here what others answer."""
            stored = super().get(key)
            if stored is None:
                return None
            stored.value.items()  # without those whose time is up: they would be looked through in each copy anew
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
            if not self._watch.has_room(key.to_bytes(), subkey, value, expiration):
                return False
            entries = dictionary_here.value if dictionary_here else dictionary()
            if expiration > entries.latest_expiration_time:
                self.store(key, entries, expiration)
            stored = entries.store(subkey, value, expiration)
            _tidy(self)
            _tidy(entries)
            return bool(stored)

    return Storage


def _tidy(timed: Any) -> None:
    """Forget the times of entries that were replaced: hivemind keeps each until it is over, and then looks through them all."""
    if len(timed.expiration_heap) > 2 * len(timed.data) + SPARE:
        timed.expiration_heap = sorted(timed.key_to_heap.values())


def _hold_to_own_ids(protocol: Any, node_id_of: Callable[[Any], Any]) -> None:
    """Let a peer stand in the routing table under the one id that follows from its peer id, and each bucket be bounded.

    hivemind takes any id from anybody, keeps it for ever, and for each new one walks through all that it stores, to hand it on:
    announcements are renewed long before they expire, and reach a newcomer so.
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
                task = asyncio.create_task(self.is_there(longest_unseen[1]))
                pending.add(task)
                task.add_done_callback(pending.discard)

    async def is_there(self: Any, peer: Any) -> bool:
        """Asked so, and not by a ping: that fails on what a stranger may answer. Whom it names is not looked at."""
        return await find(self, peer, [self.node_id]) is not None

    async def call_find(self: Any, peer: Any, keys: Any) -> Any:
        answers = await find(self, peer, keys)
        for key, (value, nearest) in (answers or {}).items():
            others = ((node_id, each) for node_id, each in nearest.items() if node_id != self.node_id)  # ends a search
            own = ((node_id, each) for node_id, each in others if node_id == node_id_of(each))
            named = dict(itertools.islice(own, self.bucket_size))
            strange = [each for node_id, each in named.items() if node_id not in self.routing_table]
            absent = {*strange} - await self.neighbours.there(peer.to_bytes(), strange)
            answers[key] = value, {node_id: each for node_id, each in named.items() if each not in absent}
        return answers

    pending: set[asyncio.Task[Any]] = set()
    protocol.update_routing_table, protocol.call_find, protocol.is_there = update_routing_table, call_find, is_there


def _read_few_neighbours(protocol: Any) -> None:
    """Let an answer name no more neighbours than hivemind's own do, and none by what is no peer id.

    hivemind writes each one out as base58 before anybody can look at it, which takes the square of its length: hours, for what
    one message holds, in which nothing else happens.
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
    """A FindResponse without the neighbours that are too many, or no peers at all."""
    for result in answer.results:
        named = list(itertools.islice(zip(result.nearest_node_ids, result.nearest_peer_ids, strict=False), MOST_NEIGHBOURS))
        named = [(node_id, peer_id) for node_id, peer_id in named if is_peer_id(peer_id)]
        result.nearest_node_ids[:] = [node_id for node_id, _ in named]
        result.nearest_peer_ids[:] = [peer_id for _, peer_id in named]
    return answer


def _read_addresses_one_by_one(control: Any, info: Any, peer_id: Any, address: Any) -> None:
    """Let one connection by a transport that hivemind does not know hide neither the peer nor everybody else."""

    class Readable(info):  # type: ignore[misc]
        @classmethod
        def from_protobuf(cls, message: Any) -> Any:
            peers = []
            for each in message.addrs:
                with suppress(ValueError):  # written out, because only that reads it to its end
                    peers.append(address(str(address(each))))
            return info(peer_id(message.id), peers)

    control.PeerInfo = Readable


def _outlive_messages(control: Any, unreadable: type[Exception], error: type[Exception]) -> None:
    """Let no message that a stranger wrote end the reader of all messages, nor stand for an answer where it holds none.

    p2pd passes on what it can read to its end; Python reads more strictly. What comes for all calls is read in one place, and
    nobody hears of it when that ends.
    """
    read, client = control.read_pbmsg_safe, control.ControlClient
    passed_on, call = control.p2pd_pb.PersistentConnectionResponse, client.call_unary_handler

    async def read_next(reader: Any, message: Any) -> None:
        if not isinstance(message, passed_on):
            await read(reader, message)
            return
        while len(message.callId) != CALL_ID:
            message.Clear()
            with suppress(unreadable):  # it was read to its end, and the next one begins there
                await read(reader, message)

    async def call_unary_handler(self: Any, *arguments: Any) -> Any:
        answer = await call(self, *arguments)
        if answer is None:
            raise error("a message that holds no answer")
        return answer

    control.read_pbmsg_safe, client.call_unary_handler = read_next, call_unary_handler


def _outlive_lines(p2p: Any) -> None:
    """Let no line that p2pd writes end the reader of all lines: p2pd stands still, for ever, once nobody takes them from it."""
    read = p2p._read_outputs

    async def read_outputs(self: Any, ready: Any) -> None:
        while True:
            # One that is too long, and what is left of it: that may begin as the line does by which p2pd says that it is ready.
            with suppress(ValueError, asyncio.InvalidStateError):
                await read(self, ready)
                return

    p2p._read_outputs = read_outputs


class Answering(dict[Any, Any]):
    """What is done to answer calls of others, as long as it is done.

    hivemind keeps each call that nobody here serves, or that was given up before it began, for ever: strangers write as many.
    """

    def __setitem__(self, call: Any, task: asyncio.Task[Any]) -> None:
        super().__setitem__(call, task)
        task.add_done_callback(functools.partial(self._end, call))

    def _end(self, call: Any, task: asyncio.Task[Any]) -> None:
        if self.get(call) is task:  # a stranger chooses the name of a call, and may choose it twice
            del self[call]

    def pop(self, call: Any, default: Any = None) -> Any:
        return super().pop(call, default)


class OpenCalls(dict[Any, Any]):
    """Calls that wait for their answer; one that was given up counts as gone at once, not only when its task has ended.

    An answer that comes in between would else end hivemind's reader, and with it every later call of this node.
    """

    def __contains__(self, call: object) -> bool:
        return super().__contains__(call) and not self[call].done()


SHIMMED = (
    ("logging", ("get_logger", "use_hivemind_log_handler")),
    ("serializer", ("MSGPackSerializer", "SerializerBase")),
    (
        "timed_storage",
        ("DHTExpiration", "ValueWithExpiration", "get_dht_time", "MAX_DHT_TIME_DISCREPANCY_SECONDS", "TimedStorage"),
    ),
    ("asyncio", ("as_aiter", "amap_in_executor", "switch_to_uvloop", "enter_asynchronously")),
)


def _shim() -> None:
    """Put packages named hivemind, hivemind.utils and hivemind.dht in place whose `__init__` never runs."""
    if "hivemind" in sys.modules:
        return
    specification = importlib.util.find_spec("hivemind")
    if specification is None or not specification.submodule_search_locations:
        raise ImportError("hivemind is not installed")
    root = next(iter(specification.submodule_search_locations))
    stand_in = types.ModuleType("uvloop")  # imported by hivemind.utils.asyncio for a function we never call
    stand_in.install = lambda: None  # type: ignore[attr-defined]
    borrowed = sys.modules.setdefault("uvloop", stand_in) is stand_in
    try:
        _package("hivemind", root)
        utils = _package("hivemind.utils", root)
        for module, names in SHIMMED:
            loaded = importlib.import_module(f"hivemind.utils.{module}")
            for name in names:
                setattr(utils, name, getattr(loaded, name))
        _package("hivemind.dht", root)
    finally:
        if borrowed:
            del sys.modules["uvloop"]
    utils.use_hivemind_log_handler("nowhere")  # its lines go to the root logger, as everybody's do
    logging.getLogger("hivemind").setLevel(logging.ERROR)  # strangers' faults are warnings there


def _package(name: str, root: str) -> Any:
    module = types.ModuleType(name)
    module.__path__ = [os.path.join(root, *name.split(".")[1:])]
    module.__package__ = name
    module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)  # whoever looks whether it is there finds it
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, module)
    return module
