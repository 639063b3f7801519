"""The address of a gateway: wss://example.org/gateway, with the peer id that its key must have: wss://...#12D3..."""

from waggle.core.errors import SwarmError
from waggle.core.message import Message
from waggle.core.peer_id import peer_id_of
from waggle.network.messages.addresses import is_gateway


def parse_address(address: str) -> tuple[str, bytes]:
    """The URL of a gateway, and the peer id that the address demands (empty: any). Raises SwarmError."""
    url, _, who = address.partition("#")
    if not is_gateway(url):
        raise SwarmError(Message("%1 is no gateway's address.", address), "It looks like wss://example.org/gateway.")
    try:
        return url, peer_id_of(who) if who else b""
    except ValueError as error:
        raise SwarmError(
            Message("%1 is no peer's id.", who), Message("Copy the address of the gateway %1 whole.", url)
        ) from error
