"""Downloads a swarm's own questions, before there is a node: the verifier needs all of them.

A transport joins the swarm as a node does, but announces nothing. Seeds, gateways, connected peers and members of the directory
are asked for each missing piece by its hash until one gives it. What does not have this hash is dropped, and its giver is not
asked any more. In a private swarm, the certificate that goes with each pull shows that we are a member.
"""

import asyncio
import logging
import math
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from waggle.core.errors import SwarmError
from waggle.core.message import Message
from waggle.core.peer_id import short_id
from waggle.network.identity.keys import Identity
from waggle.network.identity.membership import Membership, require_key
from waggle.network.limits.bandwidth import PAY_S, BandwidthLimiter
from waggle.network.messages import directory
from waggle.network.messages.addresses import peer_of
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport.choice import kind_of, transport_for
from waggle.network.transport.interface import Callbacks, ConnectedPeer, PeerAway, Services, Transport, fetch
from waggle.tasks.charter import Charter
from waggle.tasks.piece_store import PieceStore
from waggle.tasks.question_file.packed import piece_hash

log = logging.getLogger(__name__)

PULL_S = 30.0  # for one piece of 1 MiB: a slow line needs as long
PATIENCE_S = 120.0  # without a new piece, before it is given up
PASS_S = 1.0  # between two passes in which nobody gave a piece
MOST_PEERS = 8  # asked for one piece in one pass: a large swarm has hundreds


def _no_report(_done: int, _total: int) -> None:
    return


class PieceDownload:
    """The peers that may have the pieces, and what is known of them. Belongs to the loop's thread.

    `limit` is in bytes per second.
    """

    def __init__(self, options: SwarmOptions, identity: Identity, charter: Charter, limit: float | None = None) -> None:
        self.charter, self.bandwidth = charter, BandwidthLimiter()
        self.bandwidth.limit = limit
        self.membership = Membership(charter, identity.peer_id, options.key)
        self._store = PieceStore(options.questions_folder, charter)
        self._own = identity.peer_id
        self._named = set(map(peer_of, options.seeds))  # seeds and gateways
        self._listed, self._connected = set[bytes](), set[bytes]()  # in the directory; now
        self._givers = set[bytes]()  # gave a piece
        self._silent = set[bytes]()  # did not answer
        self._false = set[bytes]()  # gave something else

    async def run(self, transport: Transport, report: Callable[[int, int], None], patience: float = math.inf) -> None:
        """Store all missing pieces; see `download_questions`. Raises SwarmError."""
        missing = await asyncio.to_thread(self._store.missing)
        rest = list(missing)
        until = time.monotonic() + patience
        report(0, len(missing))
        while rest:
            before = len(rest)
            for sha256 in tuple(rest):
                if time.monotonic() > until:
                    raise self._failure(len(rest), len(missing))
                if piece := await self._ask_peers(transport, sha256):
                    await asyncio.to_thread(self._store.add, piece)
                    rest.remove(sha256)
                    report(len(missing) - len(rest), len(missing))
                    until = time.monotonic() + patience
            if len(rest) == before:
                if time.monotonic() > until:
                    raise self._failure(len(rest), len(missing))
                await self._read_directory(transport)
                await asyncio.sleep(min(PASS_S, patience / 4))

    async def _ask_peers(self, transport: Transport, sha256: bytes) -> bytes:
        """A piece from the first peer that gives it; empty if none does now."""
        callable_peers = list((self._named | self._listed | self._connected) - self._false - {self._own})
        random.shuffle(callable_peers)
        callable_peers.sort(key=lambda peer_id: (peer_id not in self._givers, peer_id in self._silent))
        for peer_id in callable_peers[:MOST_PEERS]:
            while not self.bandwidth.may_receive():  # a limit that the person set
                await asyncio.sleep(PAY_S)
            if piece := await self._pull(transport, peer_id, sha256):
                return piece
        return b""

    async def _pull(self, transport: Transport, peer_id: bytes, sha256: bytes) -> bytes:
        began, blob = time.monotonic(), b""
        with suppress(PeerAway):  # our own network just ended: the next pass finds it again
            blob = await fetch(
                transport, self.bandwidth, origin=peer_id, via=(), sha256=sha256, seconds=PULL_S,
                certificate=self.membership.certificate(),
            )  # fmt: skip
        if not blob:
            log.debug("peer %s gives no piece of the questions", short_id(peer_id))
            if time.monotonic() - began > PULL_S / 2:
                self._silent.add(peer_id)
            return b""
        if piece_hash(blob) != sha256.hex():
            log.info("peer %s gives something else than a piece of the questions; others are asked", short_id(peer_id))
            self._false.add(peer_id)
            return b""
        self._givers.add(peer_id)
        return blob

    async def _read_directory(self, transport: Transport) -> None:
        with suppress(PeerAway):  # the peers that are connected remain
            entries = await transport.network.read_directory(directory.key_of(self.charter.digest, 0, 0))
            self._listed = set(entries)
        present = self._named | self._listed | self._connected
        for known in (self._false, self._silent, self._givers):
            known &= present  # strangers come under ever new names

    def add_connected(self, peers: Sequence[ConnectedPeer]) -> None:
        """Ask these peers, too: all that are connected now."""
        self._connected = {peer.peer_id for peer in peers}

    def add_gateway(self, peer_id: bytes, refusal: str) -> None:
        """Ask this gateway, too, unless it takes no part here."""
        if not refusal:
            self._named.add(peer_id)

    def _failure(self, missing: int, total: int) -> SwarmError:
        if self._false:
            return SwarmError(
                Message("What some peers gave as questions of %1 was something else, and was refused.", self.charter.name),
                "Nobody else has them now. Try again later, or ask for a newer invite.",
            )
        return SwarmError(
            Message("Nobody gave the questions of %1: %2 of %3 parts are missing.", self.charter.name, missing, total),
            "Members who have them may be off. Try again later, or ask for a newer invite.",
        )


async def download_questions(
    options: SwarmOptions,
    identity: Identity,
    charter: Charter,
    *,
    limit: float | None = None,
    report: Callable[[int, int], None] = _no_report,
    patience: float = PATIENCE_S,
) -> None:
    """Download the pieces of the charter's files that are not in `options.questions_folder`. Returns at once if all are.

    `limit` is in bytes per second. `report` gets how many pieces came, and how many were missing. Raises SwarmError if nobody
    gives a piece for `patience` seconds, if the network cannot start, or if the disk refuses.
    """
    store = PieceStore(options.questions_folder, charter)
    missing = await asyncio.to_thread(store.missing)
    if not missing:
        return
    require_key(charter, options.key)
    if kind_of(options).joins_through == "gateways" and not options.gateways:
        raise SwarmError(
            "This computer takes part through gateways alone, and none is named.",
            "Name the gateway of a member in swarm.gateways.",
        )
    download = PieceDownload(options, identity, charter, limit)
    options = replace(options, port=0, relay=False, upnp=False, through="direct")  # nobody has to call us yet
    transport = transport_for(options, identity)(_callbacks(download))
    await transport.start()
    try:
        await download.run(transport, report, patience)
    finally:
        await transport.close()


def _callbacks(download: PieceDownload) -> Callbacks:
    return Callbacks(
        services=Services(digest=download.charter.digest, member=download.membership.admits),
        report=lambda event: None,
        membership=download.membership,
        on_peers=lambda peers, pongs: download.add_connected(peers),
        on_handshake=download.add_gateway,
        bandwidth=download.bandwidth,
    )
