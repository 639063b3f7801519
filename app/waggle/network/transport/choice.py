"""The one place that knows every transport and chooses one."""

from waggle.network.identity.keys import Identity
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport.availability import is_light
from waggle.network.transport.gateway import charter_download as from_gateways
from waggle.network.transport.gateway.transport import GatewayTransport
from waggle.network.transport.hivemind import charter_download as from_seeds
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


async def fetch_charter(options: SwarmOptions, identity: Identity, digest: bytes) -> Charter:
    """Get the charter with this hash from gateways or seeds and check it. Raises SwarmError, and CharterError for a wrong one."""
    if is_light(options):
        return await from_gateways.fetch_charter(options, digest)
    return await from_seeds.fetch_charter(options, identity, digest)
