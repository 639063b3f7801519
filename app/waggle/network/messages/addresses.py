"""Checks addresses: multiaddresses that end in a peer id, and the web addresses of gateways.

hivemind understands every multiaddress that passes here. Not accepted are the protocols on which no Waggle node listens (onion,
unix sockets, dnsaddr).
"""

import ipaddress
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from waggle.core.errors import SwarmError
from waggle.core.message import Message
from waggle.core.peer_id import WeakKey, peer_id_of

PORTS = 65_535
Ip = ipaddress.IPv4Address | ipaddress.IPv6Address
ADDRESS_FORM = "It looks like /ip4/203.0.113.7/tcp/4001/p2p/12D3Koo...: copy it whole from the seed."

_FORM = re.compile(
    r"/(?P<kind>ip4|ip6|dns|dns4|dns6)/(?P<host>[0-9A-Za-z.:-]{1,253})"
    r"/(?:tcp|udp)/(?P<port>[1-9][0-9]{0,4})"
    r"(?:/(?:quic|quic-v1|ws|wss|tls)){0,3}"
    r"(?:/p2p/(?P<relay>[0-9A-Za-z]{1,64})/p2p-circuit)?"
    r"/p2p/(?P<peer>[0-9A-Za-z]{1,64})"
)
_QUIC = re.compile(r"/udp/([0-9]{1,5})/quic(?:-v1)?(?=/|$)")
_GATEWAY = re.compile(
    r"wss?://(?P<host>[0-9A-Za-z.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::(?P<port>[1-9][0-9]{0,4}))?"
    r"(?:/[0-9A-Za-z._~-]{1,64}){0,4}/gateway(?:#(?P<peer>[0-9A-Za-z]{1,64}))?"
)
_LABEL = r"(?!..--)[0-9A-Za-z](?:[0-9A-Za-z-]{0,61}[0-9A-Za-z])?"  # of a host name; the libraries below accept ASCII only
_NAME = re.compile(rf"(?:{_LABEL}\.)*{_LABEL}")


def peer_of(address: str) -> bytes:
    """The peer id at the end of a full multiaddress; raises SwarmError for anything else."""
    try:
        return _peer_of(address)
    except WeakKey as error:
        raise SwarmError(
            Message("%1 names a key for which everybody can sign.", address), "Take the address of another seed."
        ) from error
    except ValueError as error:
        raise SwarmError(Message("%1 is not a seed's address.", address), ADDRESS_FORM) from error


def is_address(text: str) -> bool:
    """Whether this is a full multiaddress with the peer id of an Ed25519 key."""
    try:
        _peer_of(text)
    except ValueError:  # it is not one, which is the answer
        return False
    return True


def by_tcp(address: str) -> str:
    """The address of the same node by TCP. Earlier versions listened for QUIC too, at the UDP port with the same number."""
    return _QUIC.sub(r"/tcp/\1", address)


def own_port(addresses: Iterable[str]) -> int:
    """The TCP port that a node with these addresses listens on; 0 if unknown. The port in a circuit is the relay's."""
    for address in addresses:
        parts = address.split("/")
        if parts[3] == "tcp" and "p2p-circuit" not in parts:
            return int(parts[4])
    return 0


def host_of(address: str) -> Ip | None:
    """The IP address in a sound multiaddress or gateway's address; of a circuit the relay's. None if it has a name instead."""
    if address.startswith("ws"):
        name = urlsplit(address).hostname or ""
        return ipaddress.ip_address(name) if ":" in name or name.replace(".", "").isdigit() else None
    parts = address.split("/")
    return ipaddress.ip_address(parts[2]) if parts[1] in ("ip4", "ip6") else None


def is_gateway(text: str) -> bool:
    """Whether this is a gateway's address, with or without its peer id. Nothing else passes, so a link can name no other page."""
    match = _GATEWAY.fullmatch(text)
    try:
        return match is not None and int(match["port"] or 1) <= PORTS and _is_web_host(match["host"]) and _has_peer(match["peer"])
    except ValueError:  # it is not one, which is the answer
        return False


def _is_web_host(host: str) -> bool:
    if host.startswith("["):
        return bool(ipaddress.IPv6Address(host[1:-1]))
    return bool(ipaddress.IPv4Address(host)) if host.replace(".", "").isdigit() else _NAME.fullmatch(host) is not None


def _has_peer(peer: str | None) -> bool:
    return peer is None or bool(peer_id_of(peer))


def _peer_of(address: str) -> bytes:
    match = _FORM.fullmatch(address)
    if match is None or int(match["port"]) > PORTS or not _is_host(match["kind"], match["host"]):
        raise ValueError("not a multiaddress")
    if match["relay"] is not None:
        peer_id_of(match["relay"])
    return peer_id_of(match["peer"])


def _is_host(kind: str, host: str) -> bool:
    """Whether `host` is a host of this kind; may raise ValueError instead of returning False."""
    match kind:
        case "ip4":
            return bool(ipaddress.IPv4Address(host))
        case "ip6":
            return bool(ipaddress.IPv6Address(host))
        case _:
            return _NAME.fullmatch(host) is not None
