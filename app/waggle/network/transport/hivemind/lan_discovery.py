"""The local network: tells of this node there, and finds nodes of the same swarm. Whoever is found is one more untrusted seed.

Off by default: it tells everybody on the network that Waggle runs here, and in which swarm.
"""

import asyncio
import logging
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from waggle.core.errors import SwarmError
from waggle.core.peer_id import text_of
from waggle.network.messages.addresses import is_address
from waggle.network.transport.hivemind.node import EVERYWHERE
from waggle.network.transport.hivemind.peer_cache import MAX_KEPT

if TYPE_CHECKING:
    from zeroconf import Zeroconf

KIND = "_waggle._tcp.local."
MAX_FOUND = 16  # new addresses suggested in an hour: made-up ones take four hours to push out the 64 that are remembered
MAX_OF_ONE = 4  # of them of one host
FORGET_S = 3600.0
MAX_ADDRESS = 200  # characters; a property holds 255 bytes
ASK_MS = 3000
TELL_S = 10.0  # for finding a name that nobody has, which takes one second mostly

log = logging.getLogger(__name__)


class Lan:
    """One node's place on the local network. Belongs to one loop; close it."""

    def __init__(
        self, charter: bytes, peer_id: bytes, suggest: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._charter = charter.hex()
        self._name = f"{text_of(peer_id)[-24:]}.{KIND}"
        self._own = f"/p2p/{text_of(peer_id)}"
        self._suggest = suggest
        self._here = ""  # what is told
        self._found_addresses: set[str] = set()  # since then:
        self._since = clock()
        self._before = deque[str](maxlen=MAX_KEPT)  # and before then, here: they are remembered, and make room for others
        self._asking: set[asyncio.Task[None]] = set()
        self._zeroconf: Any = None
        self._browser: Any = None

    async def be_at(self, addresses: Sequence[str], host: str) -> None:
        """Tell of the first of these addresses that is of use to others, and look for them there: anew where it is another one
        than before, and every hour, for whoever was passed over. Raises SwarmError where the network does not let us."""
        here = next((each for each in addresses if _is_of_use(each, host)), "")
        if here == self._here and self._clock() - self._since <= FORGET_S:
            return
        self._before.extend(self._found_addresses)
        self._found_addresses, self._since = set(), self._clock()
        if here != self._here:
            self._before.clear()  # another network, it may be
            await self.close()
            if here:
                await self._tell_of(here, host)
            self._here = here
        if here:
            await self._look()

    async def _tell_of(self, here: str, host: str) -> None:
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
                async with asyncio.timeout(TELL_S):
                    await self._zeroconf.async_register_service(info, allow_name_change=True)
            except (Error, TimeoutError):  # somebody answers to every name we try; others can still be found
                log.warning("the local network is not told of this node: its name is taken there")
        except OSError as error:
            raise SwarmError(f"The local network cannot be searched: {error.strerror}.", "Set swarm.lan to false.") from error

    async def _look(self) -> None:
        """Hear of everybody who is here: whoever looks on hears of each but once."""
        from zeroconf.asyncio import AsyncServiceBrowser

        if self._browser is not None:
            await self._browser.async_cancel()
        self._browser = AsyncServiceBrowser(self._zeroconf.zeroconf, [KIND], handlers=[self._changed])

    async def close(self) -> None:
        """Leave. Safe to call twice."""
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

    def _changed(self, zeroconf: "Zeroconf", service_type: str, name: str, state_change: Any) -> None:
        if not name.endswith(f".{KIND}"):  # whoever answers may name anything, and zeroconf would raise for it
            return
        if state_change.name in ("Added", "Updated") and name != self._name and len(self._asking) < MAX_FOUND:
            asking = asyncio.ensure_future(self._ask(zeroconf, name))
            self._asking.add(asking)
            asking.add_done_callback(self._asking.discard)

    async def _ask(self, zeroconf: "Zeroconf", name: str) -> None:
        from zeroconf.asyncio import AsyncServiceInfo

        info = AsyncServiceInfo(KIND, name)
        if await info.async_request(zeroconf, ASK_MS):
            self.hear({key: value for key, value in info.properties.items() if value is not None})

    def hear(self, properties: dict[bytes, bytes]) -> None:
        """What somebody on this network says of itself; nonsense is passed over."""
        address = properties.get(b"address", b"").decode("ascii", "replace")
        ours = properties.get(b"charter") == self._charter.encode()
        if not ours or len(address) > MAX_ADDRESS or not is_address(address) or address.endswith(self._own):
            return
        of_host = sum(_host(each) == _host(address) for each in self._found_addresses)
        if (
            address not in (*self._found_addresses, *self._before)
            and len(self._found_addresses) < MAX_FOUND
            and of_host < MAX_OF_ONE
        ):
            self._found_addresses.add(address)
            self._suggest(address)


def _host(address: str) -> str:
    return address.split("/")[2]


def _is_of_use(address: str, host: str) -> bool:
    """Whether others on the network can call it: before there is one, a node that listens everywhere has none but its own."""
    own = host == EVERYWHERE and address.startswith(("/ip4/127.", "/ip6/::1/"))
    return "/tcp/" in address and "/p2p-circuit/" not in address and len(address) <= MAX_ADDRESS and not own


def _packed(parts: Sequence[str]) -> bytes:
    return socket.inet_pton(socket.AF_INET6 if parts[1] == "ip6" else socket.AF_INET, parts[2])
