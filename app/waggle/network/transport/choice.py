"""Chooses the transport of a node. Only network/swarm_preview.py knows both, too: it tells a person which of them works."""

from waggle.core.errors import SwarmError
from waggle.network.identity.keys import Identity
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport.availability import is_light
from waggle.network.transport.gateway import charter_download as from_gateways
from waggle.network.transport.gateway.transport import GatewayTransport
from waggle.network.transport.hivemind import charter_download as from_seeds
from waggle.network.transport.hivemind import peer_cache
from waggle.network.transport.hivemind.daemon import require_port
from waggle.network.transport.hivemind.transport import HivemindTransport
from waggle.network.transport.interface import Callbacks, OpenTransport, Transport
from waggle.tasks.charter import Charter


def transport_for(options: SwarmOptions, identity: Identity) -> OpenTransport:
    """The transport that these options ask for. It connects when it is started.

    A new transport is a folder beside this file and one line here.
    """

    def open_transport(callbacks: Callbacks) -> Transport:
        if is_light(options):
            return GatewayTransport(options, identity, callbacks)
        return HivemindTransport(options, identity, callbacks)

    return open_transport


def usable_port(host: str, port: int) -> int:
    """The port, if a transport can listen on it; else 0, which stands for any free one."""
    try:
        require_port(host, port)
    except SwarmError:  # known peers and seeds find this node on any port
        return 0
    return port


def known_addresses(options: SwarmOptions) -> tuple[str, ...]:
    """The addresses of peers that this node met lately, trusted peers first."""
    return peer_cache.read(options.known_peers)


async def fetch_charter(options: SwarmOptions, identity: Identity, digest: bytes) -> Charter:
    """Get the charter with this hash from gateways or seeds and check it. Raises SwarmError, and CharterError for a wrong one."""
    if is_light(options):
        return await from_gateways.fetch_charter(options, digest)
    return await from_seeds.fetch_charter(options, identity, digest)
