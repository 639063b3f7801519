"""What p2pd relays for other nodes: at a seed as much of each connection as we choose, elsewhere nothing."""

import asyncio
import logging
import types
from collections.abc import Awaitable, Callable
from typing import Any

HOP = "/libp2p/circuit/relay/0.2.0/hop"  # the protocol for reserving a place: libp2p's specification "circuit-v2"
RESERVE = b"\x02\x08\x00"  # its message RESERVE, with the length in front
RESERVATIONS, CIRCUITS = 1024, 64  # peers that a seed relays for, and connections to each of them
# Of one relayed connection, whose ends may be no nodes of ours. p2pd's defaults are 16 MiB in each direction and 4 GiB.
RELAY_BUFFER, RELAYED = 64 * 1024, 256 * 1024 * 1024
GRANTED = b"\x10\x80\x80\x80\x80\x01"  # the number RELAYED, as it stands in the answer to RESERVE
ASK_S = 30.0
STARTS = 8  # tries. With ONE_THREAD, one start in thirteen failed on a busy computer, and none on another
# Go runs one thread at a time: without this, 20 starts of 20 failed on some computers.
ONE_THREAD = "GOMAXPROCS=1"

log = logging.getLogger(__name__)


def arguments(relay: bool) -> dict[str, Any]:
    """p2pd's options on the command line."""
    if not relay:
        return {"relayService": False}
    return {
        "relayService": True, "relayMaxReservations": RESERVATIONS, "relayMaxCircuits": CIRCUITS,
        "relayBufferSize": RELAY_BUFFER, "relayDataLimit": RELAYED,
    }  # fmt: skip


async def start(
    hivemind: types.SimpleNamespace, start_p2pd: Callable[[], Awaitable[Any]], end: Callable[[Any], Awaitable[None]]
) -> Any:
    """Start a p2pd that relays as much as its options say.

    Each p2pd starts two relays, and the one that is ready last serves: ours, or libp2p's, which ends a connection after 128 KiB.
    So it is started until a test shows that ours serves; with ONE_THREAD that is nearly always the first time.
    """
    for _ in range(STARTS):
        p2p, grants = await start_p2pd(), False
        try:
            grants = await _grants(hivemind, p2p, end)
        finally:
            if not grants:
                await end(p2p)
        if grants:
            return p2p
    log.warning("the network process relays too little of what peers behind routers send")
    return await start_p2pd()


async def disable(hivemind: types.SimpleNamespace, p2p: Any) -> None:
    """Relay for nobody. p2pd starts a relay whatever its options say, and drops it if another handler replaces it briefly."""
    await p2p.add_protobuf_handler(HOP, None, hivemind.BytesValue)
    await p2p.remove_protobuf_handler(HOP)


async def _grants(hivemind: types.SimpleNamespace, p2p: Any, end: Callable[[Any], Awaitable[None]]) -> bool:
    """Whether a stranger that reserves a place at this p2pd may send as much as our options say."""
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
    except hivemind.failures as error:  # no answer, or an answer without that number
        log.info("the network process is started again, to relay more: %s", type(error).__name__)
        return False
    return True
