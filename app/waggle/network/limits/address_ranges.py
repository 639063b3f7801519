"""Sources: where a peer comes from, so that whoever owns one address range cannot pass for a crowd. Pure."""

import ipaddress
from typing import Literal

Route = Literal["direct", "lan", "relay", "gone"]  # straight, straight within one's own network, through a seed, not at all
RELAYED = "relay"  # all relayed peers share one source: their own addresses are not seen
HIDDEN = "hidden"  # and so do light clients at home or behind a web server on this computer, which cannot be told apart
IPV4_BITS, IPV6_BITS = 24, 48  # what one subscriber or one rented machine easily has to itself
# A provider gives these to its subscribers, who are strangers to each other: they count like public ones, not as home. Tailscale
# takes them too, spread over the whole block: one's own computers there are of many ranges then, and hardly bound each other.
CARRIERS = ipaddress.ip_network("100.64.0.0/10")


def source_of(address: str, *, relayed: bool) -> str:
    """The address range of a multiaddress in words; empty where a peer counts for itself.

    That is at home, in a classroom and on this computer: there, everybody has the same range. So it is for all who come through a
    container's bridge, which hides their own addresses: it cannot be told from a home whose router uses the same block.
    """
    if relayed:
        return RELAYED
    try:
        ip = ipaddress.ip_address(address.split("/")[2])
    except (IndexError, ValueError):  # a name instead of a number, which p2pd does not give for a connection: nothing known
        return RELAYED
    ip = getattr(ip, "ipv4_mapped", None) or ip
    if not ip.is_global and ip not in CARRIERS:
        return ""
    return str(ipaddress.ip_network((ip, IPV4_BITS if ip.version == 4 else IPV6_BITS), strict=False))


def owner_of(source: str, peer_id: bytes) -> tuple[str | bytes, str | bytes]:
    """As whom a peer from there is counted, and together with whom: a range has one owner, and relayed ones could all be one."""
    own = peer_id if source in ("", RELAYED) else source
    return own, RELAYED if source == RELAYED else own
