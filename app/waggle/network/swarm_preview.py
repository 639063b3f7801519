"""Looks at the swarm of an invite through its seeds or gateways, with an identity that is used once.

It uses both transports, because it tells the person which of them works from here.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from waggle.core.errors import CharterError, SwarmError
from waggle.network.identity import keys
from waggle.network.identity.keys import Identity
from waggle.network.identity.membership import Membership
from waggle.network.messages import directory
from waggle.network.messages.addresses import peer_of
from waggle.network.messages.invite import Invite
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport.availability import has_hivemind
from waggle.network.transport.choice import transport_for
from waggle.network.transport.gateway.charter_download import find_charter
from waggle.network.transport.hivemind.network import HivemindNetwork, open_network
from waggle.network.transport.interface import Callbacks, PeerAway, Services
from waggle.tasks import charter as charters
from waggle.tasks.charter import Charter

RETRY_S = 5.0  # timeout at a start after which only a gateway had answered
SEEDS_S = 30.0  # timeout for all seeds of an invite together: a link may name sixteen that never answer


@dataclass(frozen=True)
class SwarmPreview:
    """`charter` is None if no node gave it, `answered` says whether any node did, `members` counts nodes that announce now.

    `only_by_web`: no seed answered, but a gateway did.
    """

    charter: Charter | None
    answered: bool
    members: int
    only_by_web: bool = False


async def preview_swarm(invite: Invite, host: str, patience: float = SEEDS_S, *, by_web: bool = False) -> SwarmPreview:
    """Look for at most `patience` seconds at the seeds, then at the gateways; with `by_web` at the gateways only.

    Raises SwarmError if the network cannot be opened, and CharterError if all nodes that answer give a wrong charter.
    """
    with tempfile.TemporaryDirectory(prefix="waggle-visit-") as folder:
        visitor = keys.load_or_create(Path(folder) / "identity.key")
        if by_web or not has_hivemind() or not invite.seeds:
            return await _preview_by_web(invite, visitor, patience)
        async with _network(visitor, invite.charter, host) as network:
            preview = await _preview_by_seeds(network, invite, patience)
        if preview.answered or not invite.gateways:
            return preview
        preview = await _preview_by_web(invite, visitor, patience)
        return replace(preview, only_by_web=preview.answered)


async def any_seed_answers(seeds: Sequence[str], charter: bytes, host: str, patience: float = RETRY_S) -> bool:
    """Whether one of these seeds can be called from here within `patience` seconds. Raises SwarmError as `preview_swarm` does."""
    with tempfile.TemporaryDirectory(prefix="waggle-visit-") as folder:
        visitor = keys.load_or_create(Path(folder) / "identity.key")
        async with _network(visitor, charter, host) as network:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    for address in seeds:
                        with suppress(PeerAway):  # the next one may answer
                            await network.connect(address)
                            return True
    return False


@asynccontextmanager
async def _network(visitor: Identity, charter: bytes, host: str) -> AsyncIterator[HivemindNetwork]:
    network = await open_network(SwarmOptions(host=host), visitor, Services(digest=charter), port=0)
    try:
        yield network
    finally:
        await network.close()


async def _preview_by_seeds(network: HivemindNetwork, invite: Invite, patience: float) -> SwarmPreview:
    answered, wrong = False, None
    charter: Charter | None = None
    with suppress(TimeoutError):  # seeds that have not answered by now are away
        async with asyncio.timeout(patience):
            for address in invite.seeds:
                try:
                    await network.connect(address)
                    answered = True
                    document = await network.fetch_charter(peer_of(address), invite.charter)
                    charter = charters.decode(document, expected=invite.charter) if document else None
                except PeerAway:  # the next seed may answer
                    continue
                except CharterError as error:  # damaged or forged: another seed may have the true one
                    wrong = error
                if charter is not None:
                    break
    if charter is None and wrong is not None:
        raise wrong
    return SwarmPreview(charter, answered, await _count_members(network, invite.charter) if answered else 0)


async def _preview_by_web(invite: Invite, visitor: Identity, patience: float) -> SwarmPreview:
    if not invite.gateways:
        raise SwarmError(
            "This computer takes part through gateways alone, and this invite names none.",
            "Ask for an invite from a member whose node lends its web port.",
        )
    charter: Charter | None = None
    with suppress(TimeoutError):
        async with asyncio.timeout(patience):
            charter = await find_charter(invite.gateways, invite.charter)
    if charter is None:
        return SwarmPreview(None, answered=False, members=0)
    joined = asyncio.Event()
    callbacks = Callbacks(
        services=Services(digest=invite.charter),
        report=lambda event: None,
        membership=Membership(charter, visitor.peer_id, invite.key),
        on_joined=joined.set,
    )
    transport = transport_for(SwarmOptions(gateways=invite.gateways, light=True), visitor)(callbacks)
    try:
        with suppress(TimeoutError, PeerAway):  # the number of members is not essential
            async with asyncio.timeout(patience):
                await transport.start()
                await joined.wait()
                return SwarmPreview(charter, answered=True, members=len(await transport.network.read_directory("")))
    finally:
        await transport.close()
    return SwarmPreview(charter, answered=True, members=0)


async def _count_members(network: HivemindNetwork, charter: bytes) -> int:
    """The nodes in the first shard: all of a small swarm, and enough of a large one to show that it is large."""
    try:
        return len(await network.read_directory(directory.key_of(charter, 0, 0)))
    except PeerAway:  # the number of members is not essential
        return 0
