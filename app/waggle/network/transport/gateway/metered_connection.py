"""A client's connection that knows how many bytes of it wait here, and the bound on these bytes of all connections together."""

from collections.abc import Mapping

from websockets.asyncio.server import ServerConnection
from websockets.frames import DATA_OPCODES, Frame
from websockets.protocol import Event, State

from waggle.network.limits.rate_limits import of_largest_holder
from waggle.network.transport.gateway.bounded_connection import BoundedConnection

MAX_REQUEST = 16 * 1024  # bytes of an HTTP request with its headers; websockets would take a megabyte, and keep it
# Bytes of all clients that came and are not processed: beginnings of messages, and messages that wait for a limit. Each of the
# largest messages takes 2 MiB, an honest one a twentieth of that.
MAX_UNPROCESSED = 10 * 1024 * 1024


class MeteredConnection(BoundedConnection, ServerConnection):
    """Counts what it received until the server comes back for the next message."""

    _begun = 0  # bytes of the request, or of a frame, that has not ended
    _waiting = 0  # bytes of frames that nobody has received
    _served = 0  # bytes of the message that is being processed

    @property
    def unprocessed(self) -> int:
        """Bytes that came and are not processed."""
        return self._begun + self._waiting + self._served

    async def next_message(self) -> bytes:
        """The next message; the one before counts as processed. Raises ConnectionClosed."""
        self._served = 0
        message = await self.recv(decode=False)
        self._waiting, self._served = self._waiting - len(message), len(message)
        return message

    def process_piece(self, data: bytes) -> None:
        self._begun += len(data)
        super().process_piece(data)
        if self.protocol.state is State.CONNECTING and self._begun > MAX_REQUEST:
            self.transport.abort()

    def process_event(self, event: Event) -> None:
        self._begun = 0  # what follows it in the same piece is less than a kilobyte
        if isinstance(event, Frame) and event.opcode in DATA_OPCODES:
            self._waiting += len(event.data)
        super().process_event(event)

    def connection_lost(self, exc: Exception | None) -> None:
        """Give back what waits here: the connection itself is in reference cycles, and may stay until garbage is collected."""
        self.protocol.reader.buffer.clear()
        self.recv_messages.frames.queue.clear()
        super().connection_lost(exc)


def greediest(here: Mapping[MeteredConnection, str]) -> MeteredConnection | None:
    """The connection that must end because too much waits here; None if all is within the bound.

    It has most unprocessed bytes in the address range that has most; `here` holds the range of each connection.
    """
    if sum(each.unprocessed for each in here) <= MAX_UNPROCESSED:
        return None
    crowd = of_largest_holder((each, source or each.id.bytes, each.unprocessed) for each, source in here.items())
    return max(crowd, key=lambda each: each.unprocessed)
