"""The web port of a node: the status page, its figures for programs, and the door of the gateway where that is offered.

It answers GET alone and reads nothing of what is asked but the path.
"""

import http
import logging
import time
from collections.abc import Awaitable, Callable

import msgspec
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from waggle.errors import SwarmError
from waggle.swarm import status_page
from waggle.swarm.board import Status

GATEWAY, CHARTER = "/gateway", "/charter"
MOST = 256  # connections at once
FRESH_S = 1.0  # a page is made once a second at most, however many ask
MAX_MESSAGE = 4 * 1024 * 1024
SAFE = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Connection": "close",
}

Serve = Callable[[ServerConnection], Awaitable[None]]


class Web:
    """Owns the listening socket. `status` gives the figures of now; `gateway` serves a light client until it leaves."""

    def __init__(self, status: Callable[[], Status], gateway: Serve | None = None, charter: bytes = b"") -> None:
        self._status = status
        self._charter = charter
        self._gateway = gateway
        self._server: Server | None = None
        self._made: dict[str, tuple[float, bytes]] = {}

    async def start(self, host: str, port: int) -> None:
        """Listen; raises SwarmError for a port in use."""
        quiet = logging.getLogger(f"{__name__}.strangers")
        quiet.setLevel(logging.CRITICAL)  # whatever a stranger sends is not our warning
        try:
            self._server = await serve(
                self._serve,
                host,
                port,
                process_request=self._answer,
                logger=quiet,
                max_size=MAX_MESSAGE,
                server_header=None,
                compression=None,
            )
        except OSError as error:
            raise SwarmError(
                f"The web port {port} of {host} cannot be listened on: {error.strerror}.", "Choose another web.port, or 0: none."
            ) from error

    async def close(self) -> None:
        """Let go of the port and of everybody connected. Safe to call twice."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
            await server.wait_closed()

    @property
    def port(self) -> int:
        """Where it listens."""
        assert self._server is not None, "started"
        return int(next(iter(self._server.sockets)).getsockname()[1])

    async def _serve(self, connection: ServerConnection) -> None:
        assert self._gateway is not None, "only the gateway's path gets here"
        await self._gateway(connection)

    def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        if self._server is not None and len(self._server.connections) > MOST:
            return _response(http.HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", b"too many at once\n")
        match request.path.partition("?")[0]:
            case "/":
                return self._page("text/html", lambda status: status_page.html(status).encode())
            case path if path == CHARTER and self._charter:
                return _response(http.HTTPStatus.OK, "application/json", self._charter)
            case "/metrics":
                return self._page("text/plain; version=0.0.4", lambda status: status_page.metrics(status).encode())
            case "/status.json":
                return self._page("application/json", msgspec.json.encode)
            case path if path == GATEWAY and self._gateway is not None:
                return None
            case _:
                return _response(http.HTTPStatus.NOT_FOUND, "text/plain", b"nothing here\n")

    def _page(self, kind: str, make: Callable[[Status], bytes]) -> Response:
        made_at, body = self._made.get(kind, (-FRESH_S, b""))
        if time.monotonic() - made_at >= FRESH_S:
            body = make(self._status())
            self._made[kind] = time.monotonic(), body
        return _response(http.HTTPStatus.OK, kind, body)


def _response(status: http.HTTPStatus, kind: str, body: bytes) -> Response:
    kind = kind if "charset" in kind else f"{kind}; charset=utf-8"
    headers = Headers({**SAFE, "Content-Type": kind, "Content-Length": str(len(body))})
    return Response(status.value, status.phrase, headers, body)
