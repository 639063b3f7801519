"""What a home stores about a swarm of its list: the charter, and the key of a private one."""

from waggle.core.paths import Home
from waggle.network.identity import membership
from waggle.tasks import charter as charters
from waggle.tasks import shipped_swarms
from waggle.tasks.charter import Charter


def known_charter(home: Home, digest: str) -> Charter:
    """The shipped or stored charter of this hash (hex). Raises CharterError."""
    shipped = shipped_swarms.shipped_swarm(digest)
    return shipped or charters.read(home.swarm(digest).charter_file, expected=bytes.fromhex(digest))


def require_stored_key(home: Home, charter: Charter) -> None:
    """Raise SwarmError if the swarm is private, and its key is not here, is wrong or cannot be read."""
    membership.require_key(charter, membership.read_key(home.swarm(charter.digest.hex()).key))
