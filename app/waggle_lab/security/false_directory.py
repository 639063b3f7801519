"""What a hostile DHT node answers about the directory: entries that no honest node would store, or that it has none."""

import functools
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from waggle.network.identity.keys import Identity
from waggle.network.messages import directory
from waggle.network.transport.hivemind.network import HivemindNetwork
from waggle.network.transport.hivemind.patches import load_hivemind
from waggle_lab.security import near_names
from waggle_lab.security.attacker import crowd_announcement

MADE_UP_NEIGHBOURS = 20  # as many as an answer may name


@functools.cache
def _swallowing(local: Any) -> Any:
    """A storage of hivemind's that takes everything and has nothing."""

    class Swallowing(local):  # type: ignore[misc]
        def get(self, key: Any) -> None:
            return None

        def store_subkey(self, key: Any, subkey: Any, value: bytes, expiration: float) -> bool:
            return True

    return Swallowing


def show_crowd(network: HivemindNetwork, digest: bytes, identities: Sequence[Identity], changes: Mapping[str, Any]) -> None:
    """Give the announcements of a crowd to everybody who reads the directory here. No honest node would store all of them."""
    hivemind, protocol = load_hivemind(), network._node.protocol
    protocol.storage = _storages().DHTLocalStorage()
    key = hivemind.DHTID.generate(directory.key_of(digest, 0, 0))
    for identity in identities:
        signed, expires_at = crowd_announcement(digest, identity, changes)
        protocol.storage.store(key, hivemind.serializer.dumps(signed), expires_at, subkey=identity.peer_id)


def swallow_directory(network: HivemindNetwork, digest: bytes) -> None:
    """Say of every entry that it is stored, give none, and name made-up neighbours around the directory's key."""
    hivemind, protocol = load_hivemind(), network._node.protocol
    swallowing = _swallowing(_storages().DHTLocalStorage)
    if isinstance(protocol.storage, swallowing):
        return
    protocol.storage = swallowing()
    for _, peer_id in near_names.ground_keys(directory.key_of(digest, 0, 0), MADE_UP_NEIGHBOURS):
        peer = hivemind.PeerID(peer_id)
        protocol.routing_table.add_or_update_node(hivemind.node_id_of(peer), peer)


def _storages() -> Any:
    return importlib.import_module("hivemind.dht.storage")
