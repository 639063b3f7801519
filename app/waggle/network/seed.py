"""A seed: a node that trains nothing. Others meet through it and get the charter and the swarm's own questions from it.

A seed with a status page is a whole node: it collects and judges what the others share, and scores their answer sheets.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

from waggle.core.errors import SwarmError
from waggle.core.peer_id import text_of, with_fingerprint
from waggle.network.identity.keys import Identity, name_of
from waggle.network.identity.membership import Membership
from waggle.network.limits.rate_limits import AddressRangeRateLimit
from waggle.network.messages import directory, handshake
from waggle.network.messages.clock_skew import ENOUGH
from waggle.network.messages.events import (
    ClockSkewed,
    DuplicateIdentity,
    NetworkEvent,
    NetworkRestarted,
    OwnSeed,
    ReachChanged,
)
from waggle.network.messages.options import SwarmOptions
from waggle.network.node import DIGEST_BYTES, UPLOAD_BURST, UPLOAD_RATE
from waggle.network.open_node import open_node
from waggle.network.questions_download import PieceDownload
from waggle.network.transport.choice import kind_of, transport_for
from waggle.network.transport.interface import Callbacks, ConnectedPeer, Pong, Services
from waggle.network.transport.tasks import end
from waggle.tasks import charter as charters
from waggle.tasks.charter import Charter
from waggle.tasks.piece_store import PieceStore
from waggle.tasks.sandbox.verifier import Verifier

NEW_IDENTITY = "Stop one of them, and give it an identity of its own: waggle identity renew"


async def run(
    options: SwarmOptions,
    identity: Identity,
    charter: Charter,
    print_line: Callable[[str], None],
    stop: asyncio.Event,
    *,
    limit: float | None = None,
    only_until_complete: bool = False,
) -> None:
    """Serve until `stop` is set, and print the addresses, and how many peers are connected. Raises SwarmError.

    Pieces of the swarm's own questions that are missing are downloaded from members meanwhile, at most `limit` bytes per second.
    With `only_until_complete`, return once all of them are here.
    """
    options = replace(options, light=False)
    if kind_of(options).joins_through == "gateways":  # a light client cannot be called
        raise SwarmError("This computer cannot join a swarm: its network part is missing.", "(hivemind)")
    address_ranges: dict[bytes, str] = {}

    def on_peers(peers: list[ConnectedPeer], _pongs: dict[bytes, Pong]) -> None:
        address_ranges.clear()
        address_ranges.update((peer.peer_id, peer.source) for peer in peers)
        download.add_connected(peers)

    membership, document = Membership(charter, identity.peer_id), charters.encode(charter)
    download = PieceDownload(options, identity, charter, limit)
    pieces, upload_limit = PieceStore(options.questions_folder, charter), AddressRangeRateLimit(UPLOAD_RATE, UPLOAD_BURST)

    async def give_piece(peer_id: bytes, request: bytes) -> bytes:
        sha256, certificate = request[:DIGEST_BYTES], request[DIGEST_BYTES:]
        if not pieces.names(sha256) or not membership.admits(peer_id, certificate):
            return b""
        piece = await asyncio.to_thread(pieces.get, sha256)
        return piece if upload_limit.allows(peer_id, address_ranges.get(peer_id, ""), len(piece)) else b""

    services = Services(
        payload=give_piece,
        charter=lambda sha256: document if sha256 == charter.digest else b"",
        handshake=lambda: handshake.write(charter.digest, b""),
        source=address_ranges.get,
        refresh_peers=lambda: transport.refresh_peers(),
        digest=charter.digest,
        member=membership.admits,
        useful=lambda announced: directory.is_useful(announced, charter, time.time()),
    )
    callbacks = Callbacks(
        services=services, report=lambda event: _print_event(event, print_line), membership=membership, on_peers=on_peers
    )
    transport = transport_for(options, identity)(callbacks)
    await transport.start()
    try:
        _introduce(identity, charter, await transport.network.addresses(), print_line)
        fetching = download.run(transport, lambda done, total: _print_pieces(done, total, print_line))
        await _run_until(stop, transport.run(), fetching, only_until_complete=only_until_complete)
    finally:
        await transport.close()


async def run_with_page(
    options: SwarmOptions,
    identity: Identity,
    charter: Charter,
    verifier: Verifier,
    print_line: Callable[[str], None],
    stop: asyncio.Event,
) -> None:
    """The same, with a status page at `options.web_port`. Raises SwarmError."""
    options = replace(options, leaderboard=True)
    node = open_node(options, charter, identity, verifier, lambda event: _print_event(event, print_line))
    try:
        await node.start()
        _introduce(identity, charter, await node.addresses(), print_line)
        assert node.web is not None, "options.web_port"
        print_line(f"Status page: http://{options.web_host}:{node.web.port}/")
        await _run_until(stop, node.run())
    finally:
        await node.close()


def _introduce(identity: Identity, charter: Charter, addresses: Sequence[str], print_line: Callable[[str], None]) -> None:
    name = with_fingerprint(name_of(identity.peer_id), text_of(identity.peer_id))
    print_line(f"Seed {name} of {charter.name}, charter {charter.digest.hex()}")
    for address in addresses:
        print_line(address)


async def _run_until(
    stop: asyncio.Event,
    work: Coroutine[Any, Any, None],
    fetching: Coroutine[Any, Any, None] | None = None,
    *,
    only_until_complete: bool = False,
) -> None:
    """Work until `stop` is set, and fetch meanwhile; raise what only a bug of ours can raise in the work, and SwarmError."""
    ending = [asyncio.create_task(stop.wait()), asyncio.create_task(work)]
    fetch = asyncio.create_task(fetching or asyncio.sleep(0))
    try:
        while not any(task.done() for task in ending):
            await asyncio.wait([*ending, *(() if fetch.done() else (fetch,))], return_when=asyncio.FIRST_COMPLETED)
            if fetch.done():
                fetch.result()
                if only_until_complete:
                    return
        if ending[1].done():
            ending[1].result()
    finally:
        await end([*ending, fetch])


def _print_pieces(done: int, total: int, print_line: Callable[[str], None]) -> None:
    if total:
        print_line(f"The swarm's questions: {done} of {total} parts are here")


def _print_event(event: NetworkEvent, print_line: Callable[[str], None]) -> None:
    match event:
        case ReachChanged(peers=peers):
            print_line(f"{peers} connected")
        case NetworkRestarted(reason=reason):
            print_line(f"Started again: {reason}")
        case ClockSkewed(seconds=seconds, agreeing=agreeing) if agreeing >= ENOUGH:
            print_line(f"This computer's clock is off by {seconds:.0f} s")
        case ClockSkewed(seconds=seconds):
            print_line(f"This computer's clock and that of a peer differ by {seconds:.0f} s: one of the two is wrong")
        case DuplicateIdentity():
            print_line(f"Another computer takes part with this identity: others see one of the two. {NEW_IDENTITY}")
        case OwnSeed(address=address):
            print_line(f"The seed {address} has this identity itself: one of the two computers is a copy. {NEW_IDENTITY}")
        case _:
            pass  # a seed has neither groups nor traffic
