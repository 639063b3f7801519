"""The transports by name, and which of them a node uses. network/swarm_preview.py tries both by itself, to compare them."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal

from waggle.network.identity.keys import Identity
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport.availability import has_hivemind
from waggle.network.transport.gateway import charter_download as from_gateways
from waggle.network.transport.gateway.transport import GatewayTransport
from waggle.network.transport.hivemind import charter_download as from_seeds
from waggle.network.transport.hivemind.transport import HivemindTransport
from waggle.network.transport.interface import Callbacks, OpenTransport, Transport
from waggle.tasks.charter import Charter


@dataclass(frozen=True)
class TransportKind:
    """What a transport's folder offers: a transport that `start` connects, and the charter with a hash, before there is a node.

    `fetch_charter` checks the charter. It raises SwarmError if no node gives it, and CharterError if they give wrong ones only.
    `joins_through` says which addresses of an invite it uses; "": none, it finds other nodes by itself.
    """

    create: Callable[[SwarmOptions, Identity, Callbacks], Transport]
    fetch_charter: Callable[[SwarmOptions, Identity, bytes], Coroutine[Any, Any, Charter]]
    joins_through: Literal["seeds", "gateways", ""] = ""


TRANSPORTS = {  # by the value of SwarmOptions.transport
    "gateway": TransportKind(GatewayTransport, from_gateways.fetch_charter, joins_through="gateways"),
    "hivemind": TransportKind(HivemindTransport, from_seeds.fetch_charter, joins_through="seeds"),
}


def transport_for(options: SwarmOptions, identity: Identity) -> OpenTransport:
    """The transport that these options ask for. It connects when it is started."""
    kind = kind_of(options)
    return lambda callbacks: kind.create(options, identity, callbacks)


async def fetch_charter(options: SwarmOptions, identity: Identity, digest: bytes) -> Charter:
    """Get the charter with this hash from other nodes and check it. Raises SwarmError, and CharterError for a wrong one."""
    return await kind_of(options).fetch_charter(options, identity, digest)


def kind_of(options: SwarmOptions) -> TransportKind:
    """The transport that these options name; else gateways by choice or where hivemind is missing, else hivemind."""
    return TRANSPORTS[options.transport or ("gateway" if options.light or not has_hivemind() else "hivemind")]
