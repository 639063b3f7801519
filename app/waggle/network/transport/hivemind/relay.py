"""What p2pd relays for others: a seed as much of each connection as it was told to, and nobody else anything."""

import asyncio
import logging
import types
from collections.abc import Awaitable, Callable
from typing import Any

HOP = "/libp2p/circuit/relay/0.2.0/hop"  # by which a place is asked for: libp2p's specification of circuit relays
RESERVE = b"\x02\x08\x00"  # a message of two bytes that asks for one
RESERVATIONS, CIRCUITS = 1024, 64  # peers that a seed relays for, and connections to each of them
# Of one circuit, whose ends need be no nodes of ours. p2pd would take 16 MiB for each way of it, and carry 4 GiB.
RELAY_BUFFER, RELAYED = 64 * 1024, 256 * 1024 * 1024
GRANTED = b"\x10\x80\x80\x80\x80\x01"  # RELAYED, as the answer to RESERVE says it
ASK_S = 30.0
STARTS = 8  # of which, with LAST, one in thirteen goes wrong on a busy computer, and none on another
LAST = ("/usr/bin/env", "GOMAXPROCS=1")  # Go's threads in turn: without, 20 starts of 20 went wrong on some computers

log = logging.getLogger(__name__)


def arguments(relay: bool) -> dict[str, Any]:
    """What p2pd is told on its command line."""
    if not relay:
        return {"relayService": False}
    return {
        "relayService": True, "relayMaxReservations": RESERVATIONS, "relayMaxCircuits": CIRCUITS,
        "relayBufferSize": RELAY_BUFFER, "relayDataLimit": RELAYED,
    }  # fmt: skip


async def started(
    hivemind: types.SimpleNamespace, start: Callable[[], Awaitable[Any]], end: Callable[[Any], Awaitable[None]]
) -> Any:
    """A p2pd that relays as much as it was told to, started with the words LAST before its own.

    Each has two relays, of which that one serves which is ready last: ours, or one that ends a circuit after 128 KiB.
    """
    for _ in range(STARTS):
        p2p, grants = await start(), False
        try:
            grants = await _grants(hivemind, p2p, end)
        finally:
            if not grants:
                await end(p2p)
        if grants:
            return p2p
    log.warning("the network process relays too little of what peers behind routers send")
    return await start()


async def refuse(hivemind: types.SimpleNamespace, p2p: Any) -> None:
    """Relay for nobody: p2pd starts a relay whatever it is told, and forgets it where another takes its place for a moment."""
    await p2p.add_protobuf_handler(HOP, None, hivemind.BytesValue)
    await p2p.remove_protobuf_handler(HOP)


async def _grants(hivemind: types.SimpleNamespace, p2p: Any, end: Callable[[Any], Awaitable[None]]) -> bool:
    """Whether a stranger who asks this p2pd for a place may send all that it was told to relay."""
    try:
        async with asyncio.timeout(ASK_S):
            seed = await p2p.get_visible_maddrs(latest=True)
            stranger = await hivemind.P2P.create(seed, host_maddrs=None, no_listen=True, dht_mode="client", nat_port_map=False)
            try:
                _, reader, writer = await stranger.call_binary_stream_handler(p2p.peer_id, HOP)
                writer.write(RESERVE)
                await reader.readuntil(GRANTED)
                writer.close()
            finally:
                await end(stranger)
    except hivemind.failures as error:  # the answer ended and did not say so, or there was none
        log.info("the network process is started again, to relay more: %r", error)
        return False
    return True
