"""A seed: a node that trains nothing. Others meet through it and fetch the charter document from it.

One that shows a status page also looks into what the others share, as every node does, and judges it; and it marks their
answers to the exams, where they publish some.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

from waggle.core.errors import CharterError, SwarmError
from waggle.network.identity.keys import Identity, name_of
from waggle.network.identity.membership import Membership
from waggle.network.messages import handshake
from waggle.network.messages.addresses import peer_of
from waggle.network.messages.events import ClockSkewed, NetworkEvent, NetworkRestarted, ReachChanged
from waggle.network.messages.options import SwarmOptions
from waggle.network.open_node import open_node
from waggle.network.transport.availability import is_light
from waggle.network.transport.gateway import charter_download
from waggle.network.transport.hivemind.network import open_network
from waggle.network.transport.hivemind.transport import HivemindTransport
from waggle.network.transport.interface import Callbacks, ConnectedPeer, PeerAway, Pong, Services
from waggle.tasks import charter as charters
from waggle.tasks.charter import Charter
from waggle.tasks.sandbox.verifier import Verifier


async def run(
    options: SwarmOptions, identity: Identity, charter: Charter, say: Callable[[str], None], stop: asyncio.Event
) -> None:
    """Serve until `stop` is set, saying the addresses and who is there, a line each. Raises SwarmError."""
    sources: dict[bytes, str] = {}

    def meet(peers: list[ConnectedPeer], _pongs: dict[bytes, Pong]) -> None:
        sources.clear()
        sources.update((peer.peer_id, peer.source) for peer in peers)

    admission = Membership(charter, identity.peer_id)
    services = replace(_services(charter, admission), source=sources.get, refresh_peers=lambda: connection.refresh_peers())
    callbacks = Callbacks(services=services, report=lambda news: _say(news, say), admission=admission, on_peers=meet)
    connection = HivemindTransport(options, identity, callbacks)
    await connection.start()
    try:
        _introduce(identity, charter, await connection.network.addresses(), say)
        await _until(stop, connection.run())
    finally:
        await connection.close()


async def run_with_page(
    options: SwarmOptions,
    identity: Identity,
    charter: Charter,
    verifier: Verifier,
    say: Callable[[str], None],
    stop: asyncio.Event,
) -> None:
    """The same with a status page at `options.web_port`. Raises SwarmError."""
    node = open_node(replace(options, leaderboard=True), charter, identity, verifier, lambda news: _say(news, say))
    try:
        await node.start()
        _introduce(identity, charter, await node.addresses(), say)
        say(f"Status page: http://{options.web_host}:{node.web_port}/")
        await _until(stop, node.run())
    finally:
        await node.close()


def _introduce(identity: Identity, charter: Charter, addresses: Sequence[str], say: Callable[[str], None]) -> None:
    say(f"Seed {name_of(identity.peer_id)} of {charter.name}, charter {charter.digest.hex()}")
    for address in addresses:
        say(address)


async def _until(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Work until told to stop; raise what only a fault of ours can raise in it."""
    stopped, running = asyncio.create_task(stop.wait()), asyncio.create_task(work)
    await asyncio.wait((stopped, running), return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if running.done():
        running.result()
    running.cancel()


async def fetch_charter(options: SwarmOptions, identity: Identity, digest: bytes) -> Charter:
    """Ask the seeds for the charter of this hash, and check it. Raises SwarmError where none has it, CharterError."""
    if is_light(options):
        return await charter_download.fetch_charter(options, digest)
    for address in options.seeds:
        peer_of(address)
    dht = await open_network(options, identity, Services(), port=0)
    wrong: CharterError | None = None
    try:
        for address in options.seeds:
            try:
                await dht.connect(address)
                document = await dht.fetch_charter(peer_of(address), digest)
            except PeerAway:  # the next seed may be there
                continue
            try:
                if document:
                    return charters.decode(document, expected=digest)
            except CharterError as error:  # damaged, or a lie: another seed may have the true one
                wrong = error
    finally:
        await dht.close()
    if wrong is not None:
        raise wrong
    raise SwarmError("No seed of this swarm has its charter.", "Check the internet connection, or ask for a newer invite.")


def _services(charter: Charter, admission: Membership) -> Services:
    document, digest = charters.encode(charter), charter.digest
    return Services(
        charter=lambda sha256: document if sha256 == digest else b"",
        handshake=lambda: handshake.write(digest, b""),
        digest=digest,
        member=admission.admits,
    )


def _say(news: NetworkEvent, say: Callable[[str], None]) -> None:
    match news:
        case ReachChanged(peers=peers):
            say(f"{peers} connected")
        case NetworkRestarted(reason=reason):
            say(f"Started again: {reason}")
        case ClockSkewed(seconds=seconds):
            say(f"This computer's clock is off by {seconds:.0f} s")
        case _:
            pass  # a seed has neither groups nor traffic
