"""The web port of a node: the status page, its figures for programs, and the gateway's WebSocket if it is offered.

It answers only GET. Pages of other sites, open in a browser on this computer, cannot use the gateway (the browser sends their
Origin) nor read the figures through a host name of theirs that leads here (DNS rebinding).
"""

import asyncio
import http
import ipaddress
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import msgspec
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from waggle.core.errors import SwarmError
from waggle.core.message import Message
from waggle.core.system.os_faults import fault_of
from waggle.network.limits.address_ranges import source_of
from waggle.network.messages.gateway_paths import CHARTER, GATEWAY, WAITING
from waggle.network.transport.gateway.metered_connection import MeteredConnection, greediest
from waggle.network.web import class_page, status_page
from waggle.network.web.class_statistics import ClassStatus
from waggle.network.web.statistics import SwarmStatus

MOST, MOST_FROM_ONE = 128, 48  # connections at once, and of them from one address range
FRESH_S = 1.0  # how long a page is cached, however many ask for it
MAX_GREETING = 4096  # bytes of a message before the handshake
OPEN_S, CLOSE_S = 5.0, 2.0  # for a browser or light client to send its request, and to close
SAFE = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Connection": "close",
}

log = logging.getLogger(__name__)

Serve = Callable[[MeteredConnection], Awaitable[None]]


class WebServer:
    """Owns the listening socket. `status` returns the current figures; `gateway` serves a light client until it leaves.

    `in_class` returns what the page of a class shows, with the invite that it gives to everybody who can open it; None: there is
    no such page.
    """

    def __init__(
        self,
        status: Callable[[], SwarmStatus],
        gateway: Serve | None = None,
        charter: bytes = b"",
        in_class: Callable[[], ClassStatus] | None = None,
    ) -> None:
        self._status = status
        self._in_class = in_class
        self._charter = charter
        self._gateway = gateway
        self._server: Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._is_own = False  # open to this computer only
        self._cached: dict[str, tuple[float, bytes]] = {}

    async def start(self, host: str, port: int) -> None:
        """Listen. Raises SwarmError for a port in use."""
        self._is_own = _is_loopback(host)
        quiet = logging.getLogger(f"{__name__}.strangers")
        quiet.setLevel(logging.CRITICAL)  # websockets warns about faults of strangers
        try:
            self._server = await serve(
                self._serve,
                host,
                port,
                process_request=self._answer,
                create_connection=_counted(),
                logger=quiet,
                origins=[None],
                max_size=MAX_GREETING,  # the gateway allows more after the handshake
                max_queue=WAITING,
                open_timeout=OPEN_S,
                close_timeout=CLOSE_S,
                server_header=None,
                compression=None,
            )
        except OSError as error:
            raise SwarmError(
                Message("The web port %1 of %2 cannot be listened on: %3.", str(port), host, fault_of(error).reason),
                "Choose another web.port, or 0: none.",
            ) from error

    async def close(self) -> None:
        """Close the port and all connections. Safe to call twice."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
            for each in self._serving:
                each.cancel()
            await server.wait_closed()

    @property
    def port(self) -> int:
        """The port on which it listens."""
        assert self._server is not None, "started"
        return int(next(iter(self._server.sockets)).getsockname()[1])

    async def _serve(self, connection: ServerConnection) -> None:
        assert self._gateway is not None, "only the gateway's path gets here"
        assert isinstance(connection, MeteredConnection)
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            await self._gateway(connection)
        finally:
            self._serving.discard(task)

    def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        if self._is_own and not all(_is_ours(host, self.port) for host in request.headers.get_all("Host")):
            return _response(http.HTTPStatus.FORBIDDEN, "text/plain", b"not by this name\n")
        match request.path.partition("?")[0]:
            case class_page.CLASS | class_page.JOIN | class_page.INVITE as path if self._in_class is not None:
                # The invite may hold a key: a page of somebody else must not read it through a host name that leads here.
                if not all(_is_ours(host, self.port) for host in request.headers.get_all("Host")):
                    return _response(http.HTTPStatus.FORBIDDEN, "text/plain", b"not by this name\n")
                return self._page(path, class_page.KINDS[path], partial(self._class_page, path))
            case "/":
                return self._page("/", "text/html", lambda: status_page.html(self._status()).encode())
            case path if path == CHARTER and self._charter:
                return _response(http.HTTPStatus.OK, "application/json", self._charter)
            case "/metrics":
                return self._page("/metrics", "text/plain; version=0.0.4", lambda: status_page.metrics(self._status()).encode())
            case "/status.json":
                return self._page("/status.json", "application/json", lambda: msgspec.json.encode(self._status()))
            case path if path == GATEWAY and self._gateway is not None:
                return None
            case _:
                return _response(http.HTTPStatus.NOT_FOUND, "text/plain", b"nothing here\n")

    def _class_page(self, path: str) -> bytes:
        assert self._in_class is not None, "only its paths get here"
        return class_page.content(path, self._in_class())

    def _page(self, path: str, kind: str, make: Callable[[], bytes]) -> Response:
        made_at, body = self._cached.get(path, (-FRESH_S, b""))
        if time.monotonic() - made_at >= FRESH_S:
            body = make()
            self._cached[path] = time.monotonic(), body
        return _response(http.HTTPStatus.OK, kind, body)


def _counted() -> type[ServerConnection]:
    """A connection class that counts connections, even those that never ask anything, and their unprocessed bytes.

    It ends one if there is too much of either.
    """
    here: dict[MeteredConnection, str] = {}

    class Counted(MeteredConnection):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            address = self.remote_address
            source = source_of(f"/ip/{address[0]}", relayed=False) if address else ""
            full = len(here) >= MOST
            leaver = _leaver(here, source) if full else None
            if (full and leaver is None) or (source and list(here.values()).count(source) >= MOST_FROM_ONE):
                log.debug("the web port refuses a connection: %d are open", len(here))
                self.transport.abort()
                return
            if leaver is not None:
                _end(here, leaver)
            here[self] = source

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if (greedy := greediest(here)) is not None:
                log.debug("a connection of the web port ends: %d bytes of it wait", greedy.unprocessed)
                _end(here, greedy)

        def connection_lost(self, exc: Exception | None) -> None:
            here.pop(self, None)
            super().connection_lost(exc)

    return Counted


def _end(here: dict[MeteredConnection, str], leaver: MeteredConnection) -> None:
    del here[leaver]
    leaver.transport.abort()


def _leaver(here: Mapping[MeteredConnection, str], source: str) -> MeteredConnection | None:
    """The connection that ends for a new one from `source`: the newest of the most crowded range, if that is more crowded.

    So a few address ranges with many silent connections cannot keep others out.
    """
    crowds = Counter(filter(None, here.values()))
    crowded, most = max(crowds.items(), key=lambda crowd: crowd[1], default=("", 0))
    return next(each for each in reversed([*here]) if here[each] == crowded) if most > crowds[source] + 1 else None


def _is_ours(host: str, port: int) -> bool:
    """Whether a request for this host may come from our own page: not a foreign name with our port, made to lead here.

    A reverse proxy in front of us uses its own name, with its own port or none.
    """
    name, _, number = host.rpartition(":")
    return number != str(port) or name == "localhost" or _ip(name.strip("[]")) is not None


def _is_loopback(host: str) -> bool:
    ip = _ip(host)
    return host == "localhost" or (ip is not None and ip.is_loopback)


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:  # a name
        return None


def _response(status: http.HTTPStatus, kind: str, body: bytes) -> Response:
    kind = kind if "charset" in kind else f"{kind}; charset=utf-8"
    headers = Headers({**SAFE, "Content-Type": kind, "Content-Length": str(len(body))})
    return Response(status.value, status.phrase, headers, body)
