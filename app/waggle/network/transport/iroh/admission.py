"""Who may begin a handshake, and how many connections an address range may have: quotas before any cryptography."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from waggle.network.limits.address_ranges import source_of
from waggle.network.limits.rate_limits import RateLimit

HANDSHAKES_RATE, HANDSHAKES_BURST = 2.0, 32.0  # a second and at once, from one address range
PENDING, PENDING_RANGE = 64, 16  # handshakes at a time: all together, and of one range
RETRY_FROM = 8  # pending handshakes from which on a newcomer must show first that it is where it says
CONNECTIONS, CONNECTIONS_RANGE = 256, 16


def range_of(socket: str) -> str:
    """The address range of a socket address; the address itself if it is not on the internet (a home, this computer)."""
    host, _, _ = socket.rpartition(":")
    host = host.strip("[]").partition("%")[0]
    return source_of(f"/{'ip6' if ':' in host else 'ip4'}/{host}", relayed=False) or host


class Admission:
    """Counts handshakes and connections by address range. Belongs to one event loop."""

    def __init__(self) -> None:
        self._handshakes = RateLimit(HANDSHAKES_RATE, HANDSHAKES_BURST)
        self._pending: Counter[str] = Counter()
        self._connections: Counter[str] = Counter()

    def admits(self, socket: str) -> bool:
        """Whether a handshake from this address may begin; it is charged."""
        source = range_of(socket)
        full = self._connections[source] >= CONNECTIONS_RANGE or self._connections.total() >= CONNECTIONS
        return not full and self._pending[source] < PENDING_RANGE and self._handshakes.allows(source)

    @property
    def crowded(self) -> bool:
        """Whether a newcomer must show that it is where it says, because spoofed addresses could fill the pending places."""
        return self._pending.total() >= RETRY_FROM

    @property
    def full(self) -> bool:
        """Whether no further handshake fits."""
        return self._pending.total() >= PENDING

    @contextmanager
    def handshake(self, socket: str) -> Iterator[None]:
        """Count a handshake while it lasts."""
        with _counted(self._pending, range_of(socket)):
            yield

    @contextmanager
    def connection(self, socket: str) -> Iterator[None]:
        """Count a connection while it lasts."""
        with _counted(self._connections, range_of(socket)):
            yield


@contextmanager
def _counted(counter: Counter[str], source: str) -> Iterator[None]:
    counter[source] += 1
    try:
        yield
    finally:
        counter[source] -= 1
        if not counter[source]:
            del counter[source]
