"""Fetching a swarm's charter from its gateways, over HTTP."""

import asyncio
import re
from collections.abc import Sequence

import httpx2

from waggle.core import connection_faults
from waggle.core.connection_faults import ConnectionFault
from waggle.core.errors import CharterError, SwarmError
from waggle.network.identity.keys import Identity
from waggle.network.messages.gateway_paths import CHARTER, GATEWAY
from waggle.network.messages.invite import MAX_GATEWAYS
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport.gateway.address import parse_address
from waggle.network.transport.gateway.network import CALL_S
from waggle.tasks import charter as charters
from waggle.tasks.charter import Charter


async def fetch_charter(options: SwarmOptions, _identity: Identity, digest: bytes) -> Charter:
    """Get the charter with this hash from the gateways and check it. Raises SwarmError, and CharterError for a wrong one."""
    if not options.gateways:
        raise SwarmError(
            "This computer takes part through gateways alone, and none is named.",
            "Name the gateway of a member in swarm.gateways.",
        )
    charter = await find_charter(options.gateways, digest)
    if charter is None:
        raise SwarmError("No gateway of this swarm answers.", "Check the internet connection, or ask for another gateway.")
    return charter


async def find_charter(gateways: Sequence[str], digest: bytes) -> Charter | None:
    """The charter with this hash, checked; None if no gateway answers.

    Raises SwarmError for a malformed address, an unusable proxy, or a known cause of failed connections, and CharterError if
    gateways give only wrong charters.
    """
    wrong: CharterError | None = None
    cause: ConnectionFault | None = None
    async with _client() as client:
        for address, _ in map(parse_address, gateways[:MAX_GATEWAYS]):
            try:
                async with asyncio.timeout(CALL_S):  # for the whole answer: httpx2 limits only the wait for each part of it
                    document = await _download(client, re.sub(r"^ws", "http", address).removesuffix(GATEWAY) + CHARTER)
                if document:
                    return charters.decode(document, expected=digest)
            except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:  # another gateway may answer
                cause = cause or connection_faults.cause_of(error)
            except CharterError as error:  # damaged or forged: another gateway may have the true one
                wrong = error
    if wrong is not None:
        raise wrong
    if cause is not None:
        raise SwarmError(cause.title, cause.advice)
    return None


def _client() -> httpx2.AsyncClient:
    """A client that uses the system's proxy. Raises SwarmError if it cannot."""
    connection_faults.require_usable_settings(SwarmError)
    return httpx2.AsyncClient(timeout=CALL_S, headers={"Accept-Encoding": "identity"})


async def _download(client: httpx2.AsyncClient, page: str) -> bytes:
    """A page, up to a little more than any charter has; empty if the gateway has none. Raises httpx2.HTTPError."""
    document = b""
    async with client.stream("GET", page) as answer:
        answer.raise_for_status()
        async for part in answer.aiter_raw():  # not decompressed: a small answer could become any size
            document += part
            if len(document) > charters.MAX_BYTES:
                break
    return document if answer.status_code == 200 else b""
