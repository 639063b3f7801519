"""The iroh binding (uniffi), with two faults of it corrected, and an endpoint that contacts nobody of itself."""

import asyncio
import ctypes
from collections.abc import Awaitable
from typing import Any, TypeVar

import iroh
from iroh import Endpoint, EndpointOptions, RelayMode

from waggle.core.peer_id import PEER_ID_PREFIX

PROTOCOL = b"waggle/call/1"  # ALPN
Thing = TypeVar("Thing")


def _write(self: Any, value: bytes) -> None:
    """Copy at once: uniffi writes byte by byte in Python, 2 MB in 0.7 s."""
    with self._reserve(len(value)):
        ctypes.memmove(ctypes.addressof(self.rbuf.data.contents) + self.rbuf.len, bytes(value), len(value))


iroh.iroh_ffi._UniffiRustBufferBuilder.write = _write


class Private(iroh.Preset):
    """No relays, no discovery, no DNS. UPnP stays: the binding has no word for it (see `router_filter.py`)."""

    def __init__(self, sockets: tuple[str, ...]) -> None:
        self._sockets = sockets

    def apply(self, builder: Any) -> None:
        """Called by iroh."""
        builder.apply_minimal()
        builder.relay_mode(RelayMode.disabled())
        for socket in self._sockets:
            builder.bind_addr(socket)


async def bind(key: bytes, sockets: tuple[str, ...]) -> Any:
    """An endpoint at these sockets. Raises IrohError.

    iroh listens everywhere in an address family of which no socket is named. So the other family gets a socket on this computer.
    """
    if not any(socket.startswith("[") for socket in sockets):
        sockets = (*sockets, "[::1]:0")
    elif all(socket.startswith("[") for socket in sockets):
        sockets = (*sockets, "127.0.0.1:0")
    return await Endpoint.bind(EndpointOptions(preset=Private(sockets), secret_key=key, alpns=[PROTOCOL]))


async def whole(opening: Awaitable[Thing]) -> Thing:
    """Await what opens a connection or stream. A cancellation does not interrupt it; its result is dropped then, which closes it.

    uniffi loses a result on whose way through the binding the caller gives up: the stream stays open for ever.
    """
    task = asyncio.ensure_future(opening)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        raise


def peer_id_of(endpoint: Any) -> bytes:
    """The peer id of an endpoint of ours."""
    return PEER_ID_PREFIX + bytes(endpoint.id().to_bytes())
