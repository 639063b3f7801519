"""Discovery on the local network with mDNS: advertises this node, and finds nodes of the same swarm there.

It is off by default, because it tells everybody on the network that Waggle runs here, and in which swarm. A node that it finds
is an additional seed, and no more trusted than others.
"""

import asyncio
import logging
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from waggle.core.errors import SwarmError
from waggle.core.message import Message
from waggle.core.peer_id import text_of
from waggle.core.system.os_faults import fault_of
from waggle.network.messages.addresses import is_address
from waggle.network.transport.hivemind.daemon import EVERYWHERE
from waggle.network.transport.peer_cache import MAX_KEPT

if TYPE_CHECKING:
    from zeroconf import Zeroconf

KIND = "_waggle._tcp.local."
MAX_SUGGESTED = 16  # addresses in PERIOD_S: forged ones need four hours to displace the 64 addresses that a node remembers
MAX_OF_HOST = 4  # of them
PERIOD_S = 3600.0
MAX_ADDRESS = 200  # characters; a property holds 255 bytes
ASK_MS = 3000
REGISTER_S = 10.0  # for finding a free name, which mostly takes a second

log = logging.getLogger(__name__)


class LanDiscovery:
    """Advertises one node and browses for others. Belongs to one event loop; must be closed."""

    def __init__(
        self, charter: bytes, peer_id: bytes, suggest: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._charter = charter.hex()
        self._name = f"{text_of(peer_id)[-24:]}.{KIND}"
        self._own = f"/p2p/{text_of(peer_id)}"
        self._suggest = suggest
        self._here = ""  # the address that is advertised
        self._since = clock()  # when this period began
        self._suggested: set[str] = set()  # in this period
        self._before = deque[str](maxlen=MAX_KEPT)  # in earlier periods, in this network
        self._asking: set[asyncio.Task[None]] = set()
        self._zeroconf: Any = None
        self._browser: Any = None

    async def advertise(self, addresses: Sequence[str], host: str) -> None:
        """Advertise the first address that is of use to others, and look for other nodes.

        Does it again if that address has changed, and every PERIOD_S for nodes that came when the limit was reached. Raises
        SwarmError if the network does not allow it.
        """
        here = next((each for each in addresses if _is_of_use(each, host)), "")
        if here == self._here and self._clock() - self._since <= PERIOD_S:
            return
        self._before.extend(self._suggested)
        self._suggested, self._since = set(), self._clock()
        if here != self._here:
            self._before.clear()  # it may be another network
            await self.close()
            if here:
                await self._register(here, host)
            self._here = here
        if here:
            await self._browse()

    async def _register(self, here: str, host: str) -> None:
        from zeroconf import Error, InterfaceChoice
        from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf

        try:
            self._zeroconf = AsyncZeroconf(interfaces=InterfaceChoice.All if host == EVERYWHERE else [host])
            parts = here.split("/")
            info = AsyncServiceInfo(
                KIND, self._name, addresses=[_packed(parts)], port=int(parts[4]), server=f"{self._name.split('.')[0]}.local.",
                properties={"charter": self._charter, "address": here},
            )  # fmt: skip
            try:
                async with asyncio.timeout(REGISTER_S):
                    await self._zeroconf.async_register_service(info, allow_name_change=True)
            except (Error, TimeoutError):  # a host claims every name that we try; we can still find others
                log.warning("this node is not advertised on the local network: another computer claims its name")
        except OSError as error:
            raise SwarmError(
                Message("The local network cannot be searched: %1.", fault_of(error).reason), "Set swarm.lan to false."
            ) from error

    async def _browse(self) -> None:
        """Start a new browser, which reports every node that is here; an old one reports each only once."""
        from zeroconf.asyncio import AsyncServiceBrowser

        if self._browser is not None:
            await self._browser.async_cancel()
        self._browser = AsyncServiceBrowser(self._zeroconf.zeroconf, [KIND], handlers=[self._on_change])

    async def close(self) -> None:
        """Stop advertising and looking. Safe to call twice."""
        self._here = ""
        for asking in self._asking:
            asking.cancel()
        zeroconf, self._zeroconf = self._zeroconf, None
        if self._browser is not None:
            await self._browser.async_cancel()
            self._browser = None
        if zeroconf is not None:
            await zeroconf.async_unregister_all_services()
            await zeroconf.async_close()

    def _on_change(self, zeroconf: "Zeroconf", service_type: str, name: str, state_change: Any) -> None:
        if not name.endswith(f".{KIND}"):  # a host may answer with any name, and zeroconf would raise for this
            return
        if state_change.name in ("Added", "Updated") and name != self._name and len(self._asking) < MAX_SUGGESTED:
            asking = asyncio.ensure_future(self._ask(zeroconf, name))
            self._asking.add(asking)
            asking.add_done_callback(self._asking.discard)

    async def _ask(self, zeroconf: "Zeroconf", name: str) -> None:
        from zeroconf.asyncio import AsyncServiceInfo

        info = AsyncServiceInfo(KIND, name)
        if await info.async_request(zeroconf, ASK_MS):
            self.on_service({key: value for key, value in info.properties.items() if value is not None})

    def on_service(self, properties: dict[bytes, bytes]) -> None:
        """Suggest the address that a host advertises, if it is a node of our swarm and no limit is reached."""
        address = properties.get(b"address", b"").decode("ascii", "replace")
        ours = properties.get(b"charter") == self._charter.encode()
        if not ours or len(address) > MAX_ADDRESS or not is_address(address) or address.endswith(self._own):
            return
        if address in (*self._suggested, *self._before):
            return
        of_host = sum(_host(each) == _host(address) for each in self._suggested)
        if len(self._suggested) >= MAX_SUGGESTED or of_host >= MAX_OF_HOST:
            log.debug("an address on the local network is ignored: its host, or all hosts together, advertise too many")
            return
        self._suggested.add(address)
        self._suggest(address)


def _host(address: str) -> str:
    return address.split("/")[2]


def _is_of_use(address: str, host: str) -> bool:
    """Whether others on the network can call it. A node that listens everywhere has only loopback addresses without a network."""
    own = host == EVERYWHERE and address.startswith(("/ip4/127.", "/ip6/::1/"))
    return "/tcp/" in address and "/p2p-circuit/" not in address and len(address) <= MAX_ADDRESS and not own


def _packed(parts: Sequence[str]) -> bytes:
    return socket.inet_pton(socket.AF_INET6 if parts[1] == "ip6" else socket.AF_INET, parts[2])
