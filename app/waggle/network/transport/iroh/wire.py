"""What travels on one stream between two peers: a request and its end; then an answer and its end.

Request: the length of the handler's name in one byte, the name, the content. Answer: one byte (OK or REFUSED), the length of the
hints in two bytes, the hints (where the peers can be dialled that the answer names), the content.
"""

import ipaddress
from collections.abc import Iterable
from contextlib import suppress

import msgspec

from waggle.core.errors import UNREADABLE
from waggle.core.peer_id import is_peer_id
from waggle.network.transport.iroh.frames import LONGEST_HANDLER, MOST_NAMED, PeerId, Sockets

OK, REFUSED = b"\0", b"\1"
HEAD_BYTES = 3
MOST_HINT_BYTES = 8 * 1024
Hints = dict[PeerId, Sockets]
_hints = msgspec.msgpack.Decoder(Hints)


class Malformed(Exception):
    """A peer sent something that is no request or answer."""


def request(handler: str, content: bytes) -> bytes:
    name = handler.encode()
    return bytes([len(name)]) + name + content


def read_request(raw: bytes) -> tuple[str, bytes]:
    """The handler's name and the content. Raises Malformed."""
    if not raw or not 0 < raw[0] <= LONGEST_HANDLER or len(raw) <= raw[0]:
        raise Malformed
    try:
        return raw[1 : 1 + raw[0]].decode("ascii"), raw[1 + raw[0] :]
    except UnicodeDecodeError as error:
        raise Malformed from error


def answer_head(hints: Hints) -> bytes:
    """What stands before an answer's content."""
    packed = msgspec.msgpack.encode(hints)
    return OK + len(packed).to_bytes(2, "big") + packed


def hints_size(head: bytes) -> int:
    """How many bytes of hints follow the first HEAD_BYTES. Raises Malformed."""
    size = int.from_bytes(head[1:HEAD_BYTES], "big")
    if head[:1] not in (OK, REFUSED) or size > MOST_HINT_BYTES:
        raise Malformed
    return size


def read_hints(packed: bytes) -> Hints:
    """The hints of an answer: those that have the right form, at most MOST_NAMED. Raises Malformed."""
    try:
        hints = _hints.decode(packed) if packed else {}
    except UNREADABLE as error:
        raise Malformed from error
    valid = {
        peer_id: tuple(filter(is_socket, sockets)) for peer_id, sockets in list(hints.items())[:MOST_NAMED] if is_peer_id(peer_id)
    }
    return {peer_id: sockets for peer_id, sockets in valid.items() if sockets}


def is_socket(text: str) -> bool:
    """Whether this is the socket address of one computer: no multicast, no unspecified address."""
    host, _, port = text.rpartition(":")
    with suppress(ValueError):
        address = ipaddress.ip_address(host.strip("[]"))
        return port.isdecimal() and 0 < int(port) < 65536 and not (address.is_multicast or address.is_unspecified)
    return False


def bounded(named: Iterable[tuple[bytes, tuple[str, ...]]]) -> Hints:
    """Hints for an answer, without those for which nothing is known."""
    return {peer_id: sockets for peer_id, sockets in list(named)[:MOST_NAMED] if sockets}
