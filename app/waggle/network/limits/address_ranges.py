"""The address range that a peer comes from, so that the owner of one range cannot pass for a crowd. Pure."""

import ipaddress
from typing import Literal

Route = Literal["direct", "lan", "relay", "gone"]  # direct, direct on the local network, through a seed, not connected
RELAYED = "relay"  # all relayed peers count as one range, because their own addresses are not visible
HIDDEN = "hidden"  # likewise light clients at home, or behind a web server on this computer: they look the same
IPV4_BITS, IPV6_BITS = 24, 48  # one subscriber or one rented machine easily has a whole range of this size
# Carrier-grade NAT (RFC 6598): the subscribers are strangers to each other, so these addresses count like public ones.
# Tailscale uses the block too, spread over all of it, so a person's own computers there hardly limit each other.
CARRIERS = ipaddress.ip_network("100.64.0.0/10")


def source_of(address: str, *, relayed: bool) -> str:
    """The address range of a multiaddress as text; empty if the peer counts for itself.

    A peer counts for itself at home, in a classroom and on this computer, where all have the same range. Peers behind a
    container's bridge count for themselves too: it looks like a home whose router uses the same block.
    """
    if relayed:
        return RELAYED
    try:
        ip = ipaddress.ip_address(address.split("/")[2])
    except (IndexError, ValueError):  # a host name, which p2pd does not give for a connection: nothing is known
        return RELAYED
    ip = getattr(ip, "ipv4_mapped", None) or ip
    if not ip.is_global and ip not in CARRIERS:
        return ""
    return str(ipaddress.ip_network((ip, IPV4_BITS if ip.version == 4 else IPV6_BITS), strict=False))


def owner_of(source: str, peer_id: bytes) -> tuple[str | bytes, str | bytes]:
    """The party that a peer counts as, and the crowd it counts with. A range has one owner; all relayed peers may be one."""
    own = peer_id if source in ("", RELAYED) else source
    return own, RELAYED if source == RELAYED else own
