"""hivemind's parts, submodules only (its own `__init__` loads torch and forks), and held to what strangers may send.

Works where fork and uvloop do not exist. Importing this file imports nothing.
"""

import functools
import importlib
import importlib.machinery
import importlib.util
import logging
import os
import sys
import types
from contextlib import suppress
from typing import Any

from waggle.errors import SwarmError
from waggle.swarm import announcement
from waggle.swarm.guard import SHARD_CAP

MAX_VALUE = SHARD_CAP * (announcement.MAX_BYTES + 120)  # bytes: one whole shard, as a replica passes it on


def has_hivemind() -> bool:
    """Whether this system has hivemind (there is none for Windows)."""
    return importlib.util.find_spec("hivemind") is not None


@functools.cache
def load_hivemind() -> types.SimpleNamespace:
    """The parts of hivemind that are used here. Raises SwarmError where this system has no hivemind."""
    try:
        _shim()
        from google.protobuf.message import DecodeError
        from google.protobuf.wrappers_pb2 import BytesValue
        from hivemind.dht.node import DHTNode
        from hivemind.dht.protocol import DHTProtocol
        from hivemind.dht.routing import DHTID
        from hivemind.p2p import P2P, PeerID
        from hivemind.p2p.p2p_daemon_bindings import control
        from hivemind.p2p.p2p_daemon_bindings.datastructures import PeerInfo
        from hivemind.p2p.p2p_daemon_bindings.utils import P2PDaemonError, P2PHandlerError
        from hivemind.proto import dht_pb2
        from hivemind.utils.multiaddr import Multiaddr
        from hivemind.utils.serializer import MSGPackSerializer
    except ImportError as error:
        raise SwarmError("This computer cannot join a swarm: its network part is missing.", f"({error})") from error
    _bound(DHTProtocol, MSGPackSerializer)
    _read_addresses_one_by_one(control, PeerInfo, PeerID, Multiaddr)
    # ValueError: what a stranger's address may be that hivemind cannot read
    failures = (P2PDaemonError, P2PHandlerError, DecodeError, TimeoutError, OSError, EOFError, ValueError)
    return types.SimpleNamespace(
        BytesValue=BytesValue, DHTNode=DHTNode, DHTID=DHTID, P2P=P2P, PeerID=PeerID, P2PDaemonError=P2PDaemonError,
        dht_pb2=dht_pb2, Multiaddr=Multiaddr, failures=failures,
    )  # fmt: skip


def _bound(protocol: Any, serializer: Any) -> None:
    """Let the DHT unpack no value longer than a shard, in calls and in replies: hivemind unpacks before it asks the guard."""

    class Bounded(serializer):  # type: ignore[misc]
        @classmethod
        def loads(cls, buffer: bytes) -> Any:
            if len(buffer) > MAX_VALUE:
                raise ValueError("too large a value")
            return super().loads(buffer)

    protocol.serializer = Bounded


def _read_addresses_one_by_one(control: Any, info: Any, peer_id: Any, address: Any) -> None:
    """Let one connection by a transport that hivemind does not know hide neither the peer nor everybody else."""

    class Readable(info):  # type: ignore[misc]
        @classmethod
        def from_protobuf(cls, message: Any) -> Any:
            found = []
            for each in message.addrs:
                with suppress(ValueError):  # written out, because only that reads it to its end
                    found.append(address(str(address(each))))
            return info(peer_id(message.id), found)

    control.PeerInfo = Readable


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
