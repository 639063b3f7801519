"""A WebSocket connection that ends when its other side floods it or reads nothing."""

import asyncio

from websockets.asyncio.connection import Connection
from websockets.frames import Frame
from websockets.protocol import Event

from waggle.network.limits.rate_limits import RateLimit
from waggle.network.messages.gateway_frames import MAX_MESSAGE

PIECE = 1024  # bytes read before others have their say: a ping has six


FRAMES_RATE, FRAMES_BURST = 50.0, 400.0  # of one connection, a second and at once, beside one for each KiB that they bring


READ_S = 30.0  # and to take some of what it is sent: three times as long as a light client waits for an answer


MAX_UNREAD = 2 * MAX_MESSAGE  # bytes: an answer is less


class Read(Connection):
    """One that ends where the other side takes nothing of what it is sent. Slowly is well, for those who add nothing meanwhile.

    Nothing else would end it: a goodbye, and the question whether somebody is still there, wait behind it.
    """

    late: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._frames = RateLimit(FRAMES_RATE, FRAMES_BURST)
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        for at in range(0, len(data), PIECE):
            if self.transport.is_closing():
                return
            super().data_received(data[at : at + PIECE])  # answers each ping, read or not
            if self.transport.get_write_buffer_size() > MAX_UNREAD:
                self.transport.abort()

    def process_event(self, event: Event) -> None:
        """End it where it says nothing, again and again: no quota of ours counts less than a message."""
        if isinstance(event, Frame) and not self._frames.allows(b"", max(0.0, 1 - len(event.data) / 1024)):
            self.transport.abort()
            return
        super().process_event(event)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look_again()

    def _look_again(self) -> None:
        self.late = self.loop.call_later(READ_S, self._look, self.transport.get_write_buffer_size())

    def _look(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:
            self._look_again()
        else:
            self.transport.abort()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.late.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.paused:
            self.late.cancel()
        super().connection_lost(exc)
