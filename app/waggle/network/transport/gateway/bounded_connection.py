"""A WebSocket connection that ends if the other side floods it or does not read."""

import asyncio
import dataclasses

from websockets.asyncio.connection import Connection
from websockets.frames import DATA_OPCODES, Frame
from websockets.protocol import Event

from waggle.network.limits.rate_limits import RateLimit
from waggle.network.messages.gateway_frames import MAX_MESSAGE

PIECE = 1024  # bytes processed before the write buffer is checked; a ping has six bytes
FRAMES_RATE, FRAMES_BURST = 50.0, 400.0  # frames of one connection, a second and at once, beside one for each KiB of content
READ_S = 30.0  # within which some of the write buffer must be read: three times as long as a light client waits for an answer
MAX_UNREAD = 2 * MAX_MESSAGE  # bytes in the write buffer; an answer has fewer


class BoundedConnection(Connection):
    """Ends if the other side reads nothing for READ_S, even if it sends. Slow reading is allowed.

    websockets would not end such a connection: its closing handshake and its keepalive ping wait in the same write buffer.
    """

    late: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._frames = RateLimit(FRAMES_RATE, FRAMES_BURST)
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        for at in range(0, len(data), PIECE):
            if self.transport.is_closing():
                return
            self.process_piece(data[at : at + PIECE])

    def process_piece(self, data: bytes) -> None:
        """Process at most PIECE bytes."""
        super().data_received(data)  # answers every ping, whether the other side reads the answers or not
        if self.transport.get_write_buffer_size() > MAX_UNREAD:
            self.transport.abort()

    def process_event(self, event: Event) -> None:
        """End the connection if it sends many frames with little content: other limits count messages."""
        if isinstance(event, Frame) and not self._frames.allows(b"", max(0.0, 1 - len(event.data) / 1024)):
            self.transport.abort()
            return
        if isinstance(event, Frame) and event.opcode in DATA_OPCODES:
            whole = dataclasses.replace(event)
            event.data = b""  # websockets' parser keeps the last frame, up to 2 MiB, until the next one has come
            event = whole
        super().process_event(event)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._check_later()

    def _check_later(self) -> None:
        self.late = self.loop.call_later(READ_S, self._check, self.transport.get_write_buffer_size())

    def _check(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:
            self._check_later()
        else:
            self.transport.abort()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.late.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.paused:
            self.late.cancel()
        super().connection_lost(exc)
