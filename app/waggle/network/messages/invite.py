"""The invite: a link that names a swarm, its seeds and gateways, and for a private swarm the key.

    waggle://join?charter=<64 hex digits>&seed=<multiaddress>&seed=...&gateway=wss://...#key=<32 bytes in base64url>

The charter itself is fetched from a seed or a gateway and checked against its hash. The key of a private swarm is in the
fragment, which browsers and servers neither send nor log; no `repr` here shows it.
"""

import base64
import re
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from waggle.core.errors import SwarmError
from waggle.core.message import Message
from waggle.network.messages.addresses import by_tcp, is_address, is_gateway

MAX_CHARACTERS = 4096
MAX_SEEDS = 16
MAX_GATEWAYS = 4
RETRY_HINT = Message("Ask for the link again, and copy it whole.")

_START = re.compile(r"waggle://join/?\?")  # some programs insert a slash after the host
_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_KEY = re.compile(r"key=([0-9A-Za-z_-]{43})")


@dataclass(frozen=True, kw_only=True)
class Invite:
    """`charter` is the sha256 of the charter document, `seeds` are multiaddresses, `key` is the private swarm's key or empty.

    `gateways` are for nodes that cannot connect to peers. There are seeds, or gateways, or both.
    """

    charter: bytes
    seeds: tuple[str, ...] = ()
    gateways: tuple[str, ...] = ()
    key: bytes = field(default=b"", repr=False)


def write(invite: Invite) -> str:
    """The link of an invite; raises SwarmError for an invite that `read` would refuse."""
    seeds = "".join(f"&seed={seed}" for seed in invite.seeds)  # an address holds nothing that needs percent-encoding
    gateways = "".join(f"&gateway={gateway.replace('#', '%23')}" for gateway in invite.gateways)
    key = f"#key={_text_of(invite.key)}" if invite.key else ""
    text = f"waggle://join?charter={invite.charter.hex()}{seeds}{gateways}{key}"
    if read(text) != invite:
        raise _refused(Message("cannot be written"))
    return text


def read(text: str) -> Invite:
    """Read a link; white space around it is ignored. Raises SwarmError with a text that repeats nothing of the link."""
    text = text.strip(" \t\r\n")
    start = _START.match(text)
    if start is None:
        raise SwarmError("This is not an invite link: one begins with waggle://join?", RETRY_HINT)
    if len(text) > MAX_CHARACTERS:
        raise _refused(Message("is too long"))
    if not (text.isascii() and text.isprintable()) or " " in text:
        raise _refused(Message("holds characters that no link has"))
    query, mark, fragment = text[start.end() :].partition("#")
    digests, seeds, gateways = _parameters(query)
    if len(digests) != 1 or not _DIGEST.fullmatch(digests[0]):
        raise _refused(Message("does not name one swarm"))
    if not (seeds or gateways) or len(seeds) > MAX_SEEDS or len(set(seeds)) != len(seeds):
        raise _refused(Message("names no seed, one seed twice, or more than %1", MAX_SEEDS))
    if not all(map(is_address, seeds)):
        raise _refused(Message("names a seed by something that is no address"))
    if not all(map(is_gateway, gateways)) or len(gateways) > MAX_GATEWAYS or len(set(gateways)) != len(gateways):
        raise _refused(Message("names a gateway by something that is no address, one twice, or more than %1", MAX_GATEWAYS))
    key = _key_in(fragment) if mark else b""
    seeds = list(dict.fromkeys(map(by_tcp, seeds)))  # earlier versions wrote addresses of QUIC too
    return Invite(charter=bytes.fromhex(digests[0]), seeds=tuple(seeds), gateways=tuple(gateways), key=key)


def _parameters(query: str) -> tuple[list[str], list[str], list[str]]:
    """The values of `charter`, of `seed` and of `gateway`."""
    parameters: dict[str, list[str]] = {"charter": [], "seed": [], "gateway": []}
    for part in query.split("&"):
        name, _, value = part.partition("=")
        if name not in parameters:
            raise _refused(Message("holds something that this version does not know"))
        parameters[name].append(_decoded(value))
    return parameters["charter"], parameters["seed"], parameters["gateway"]


def _decoded(value: str) -> str:
    if _BAD_PERCENT.search(value):
        raise _refused(Message("is damaged"))
    try:
        return unquote_to_bytes(value).decode("ascii")
    except UnicodeDecodeError as error:
        raise _refused(Message("holds characters that no address has")) from error


def _key_in(fragment: str) -> bytes:
    match = _KEY.fullmatch(fragment)
    key = base64.urlsafe_b64decode(match[1] + "=") if match else b""
    if (
        match is None or _text_of(key) != match[1]
    ):  # 43 characters hold 2 bits more than 32 bytes; only one text is accepted for a key
        raise _refused(Message("holds a damaged key"))
    return key


def _text_of(key: bytes) -> str:
    return base64.urlsafe_b64encode(key).decode().rstrip("=")


def _refused(why: Message) -> SwarmError:
    return SwarmError(Message("This invite %1.", why), RETRY_HINT)
