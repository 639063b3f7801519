"""Fetching a swarm's charter from its seeds."""

from collections.abc import Sequence

from waggle.core.errors import CharterError, SwarmError
from waggle.network.identity.keys import Identity
from waggle.network.messages.addresses import peer_of
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport.hivemind.network import HivemindNetwork, open_network
from waggle.network.transport.interface import PeerAway, Services
from waggle.tasks import charter as charters
from waggle.tasks.charter import Charter


async def fetch_charter(options: SwarmOptions, identity: Identity, digest: bytes) -> Charter:
    """Get the charter with this hash from the seeds and check it. Raises SwarmError, and CharterError for a wrong one."""
    for address in options.seeds:
        peer_of(address)
    network = await open_network(options, identity, Services(), port=0)
    try:
        charter = await find_charter(network, options.seeds, digest)
    finally:
        await network.close()
    if charter is None:
        raise SwarmError("No seed of this swarm has its charter.", "Check the internet connection, or ask for a newer invite.")
    return charter


async def find_charter(network: HivemindNetwork, seeds: Sequence[str], digest: bytes) -> Charter | None:
    """The charter with this hash, checked; None if no seed has it. Raises CharterError if seeds give only wrong charters."""
    wrong: CharterError | None = None
    for address in seeds:
        try:
            await network.connect(address)
            document = await network.fetch_charter(peer_of(address), digest)
            if document:
                return charters.decode(document, expected=digest)
        except PeerAway:  # another seed may answer
            continue
        except CharterError as error:  # damaged or forged: another seed may have the true one
            wrong = error
    if wrong is not None:
        raise wrong
    return None
