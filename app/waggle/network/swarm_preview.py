"""A visit: looks at a swarm through the seeds, or the gateways, of an invite, under an identity that is used once."""

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
from waggle.network.transport.gateway.charter_download import find_charter
from waggle.network.transport.gateway.transport import GatewayTransport
from waggle.network.transport.hivemind.network import HivemindNetwork, open_network
from waggle.network.transport.interface import Callbacks, PeerAway, Services
from waggle.tasks import charter as charters
from waggle.tasks.charter import Charter

AGAIN_S = 5.0  # at a start where a gateway was the only way in
SEEDS_S = 30.0  # for all seeds of an invite together: a link may name sixteen that never answer


@dataclass(frozen=True)
class SwarmPreview:
    """`charter` is None where nobody gave it, `answered` whether anybody was there, `members` who announces something now.

    `only_by_web`: the seeds were called in vain, and a gateway answered.
    """

    charter: Charter | None
    answered: bool
    members: int
    only_by_web: bool = False


async def preview_swarm(invite: Invite, host: str, patience: float = SEEDS_S, *, by_web: bool = False) -> SwarmPreview:
    """Look for so many seconds at most, among the seeds and then the gateways; `by_web`: among these alone.

    Raises SwarmError where the network cannot be opened, and CharterError where all who answer lie.
    """
    with tempfile.TemporaryDirectory(prefix="waggle-visit-") as folder:
        visitor = keys.load_or_create(Path(folder) / "identity.key")
        if by_web or not has_hivemind() or not invite.seeds:
            return await _look_by_web(invite, visitor, patience)
        async with _network(visitor, invite.charter, host) as network:
            charter = await _look(network, invite, patience)
        if charter.answered or not invite.gateways:
            return charter
        charter = await _look_by_web(invite, visitor, patience)
        return replace(charter, only_by_web=charter.answered)


async def any_seed_answers(seeds: Sequence[str], charter: bytes, host: str, patience: float = AGAIN_S) -> bool:
    """Whether one of these seeds can be called from here, as seen within so many seconds. Raises SwarmError as `visit` does."""
    with tempfile.TemporaryDirectory(prefix="waggle-visit-") as folder:
        visitor = keys.load_or_create(Path(folder) / "identity.key")
        async with _network(visitor, charter, host) as network:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    for address in seeds:
                        with suppress(PeerAway):  # the next one may be there
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


async def _look(network: HivemindNetwork, invite: Invite, patience: float) -> SwarmPreview:
    answered, wrong = False, None
    charter: Charter | None = None
    with suppress(TimeoutError):  # whoever has not answered by now is away
        async with asyncio.timeout(patience):
            for address in invite.seeds:
                try:
                    await network.connect(address)
                    answered = True
                    document = await network.fetch_charter(peer_of(address), invite.charter)
                    charter = charters.decode(document, expected=invite.charter) if document else None
                except PeerAway:  # the next seed may be there
                    continue
                except CharterError as error:  # damaged, or a lie: another seed may have the true one
                    wrong = error
                if charter is not None:
                    break
    if charter is None and wrong is not None:
        raise wrong
    return SwarmPreview(charter, answered, await _members(network, invite.charter) if answered else 0)


async def _look_by_web(invite: Invite, visitor: Identity, patience: float) -> SwarmPreview:
    """The same through the gateways."""
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
    options = SwarmOptions(gateways=invite.gateways)
    joined = asyncio.Event()
    admission = Membership(charter, visitor.peer_id, invite.key)
    callbacks = Callbacks(
        services=Services(digest=invite.charter), report=lambda news: None, admission=admission, on_joined=joined.set
    )
    gateways = GatewayTransport(options, visitor, callbacks)
    try:
        with suppress(TimeoutError, PeerAway):  # how many there are is good to know, and no more
            async with asyncio.timeout(patience):
                await gateways.start()
                await joined.wait()
                return SwarmPreview(charter, answered=True, members=len(await gateways.network.read_directory("")))
    finally:
        await gateways.close()
    return SwarmPreview(charter, answered=True, members=0)


async def _members(network: HivemindNetwork, charter: bytes) -> int:
    """Those in the first shard: all of a small swarm, and enough of a large one to say that it is large."""
    try:
        return len(await network.read_directory(directory.key_of(charter, 0, 0)))
    except PeerAway:  # how many there are is good to know, and no more
        return 0
