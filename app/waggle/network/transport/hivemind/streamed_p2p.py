"""hivemind's P2P whose calls are served over counted streams, and whose large answers are read piece by piece."""

import asyncio
import functools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from waggle.network.transport.hivemind import call_streams
from waggle.network.transport.hivemind.call_streams import OpenStreams
from waggle.network.transport.hivemind.patches import load_hivemind

HANG_UP_S = 10.0  # for p2pd to hang up


def streamed(p2p: Any, source: Callable[[bytes], str | None], longest: int) -> Any:
    """A subclass of hivemind's P2P. `source` gives a peer's address range, `longest` bounds the content of a call."""
    hivemind = load_hivemind()

    class StreamedP2P(p2p):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self._streams = OpenStreams(source, self.hang_up)

        async def hang_up(self, peer_id: bytes) -> None:
            """End all connections to a peer, and with them what it began here. It may call again."""
            with suppress(*hivemind.failures):  # it has left, or p2pd ends
                async with asyncio.timeout(HANG_UP_S):
                    await self._client.disconnect(hivemind.PeerID(peer_id))

        async def pull(self, peer: Any, name: str, request: Any, kind: Any, longest: int, meter: Callable[[int], None]) -> Any:
            """As `call_protobuf_handler`, for an answer of at most `longest` bytes; `meter` gets the size of each piece of it."""
            content, control = request.SerializeToString(), self._client.control
            return kind.FromString(await call_streams.pull(hivemind.messages, control, peer, name, content, longest, meter))

        async def _add_protobuf_unary_handler(self, name: str, handler: Any, kind: Any, balanced: bool = False) -> None:
            async def answer(peer: Any, content: bytes) -> bytes:
                context = hivemind.P2PContext(handle_name=name, local_id=self.peer_id, remote_id=peer)
                return bytes((await handler(kind.FromString(content), context)).SerializeToString())

            served = functools.partial(call_streams.serve, hivemind.messages, self._streams, answer, longest)
            await self.add_binary_stream_handler(name, served, balanced=balanced)

        async def remove_protobuf_handler(self, name: str, **_kinds: bool) -> None:
            await self.remove_binary_stream_handler(name)

    return StreamedP2P
