"""`waggle update`: says whether there is a newer version. It only looks when a person asks, and never installs anything.

The feed is a small JSON file with a signature, whose public key ships with Waggle. A newer version is written with its address
and its hash. The feed's server can hide a version, but cannot offer an older or forged one. Waggle does not download installers:
the person does, and the system checks their own signatures.
"""

import argparse
import base64
import binascii
import re
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import msgspec

from waggle import __version__
from waggle.cli.shared.printing import add_json, add_stdio, say_for, say_json
from waggle.core import connection_faults, paths
from waggle.core.errors import UNREADABLE, UpdateError
from waggle.core.message import Message

DOMAIN = b"waggle/updates/1\0"  # so that no signature of this key for another purpose is valid here
MAX_BYTES = 256 * 1024
SECONDS = 20.0
RETRY_ADVICE = "Try again later, or look where you got this Waggle."

Number = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,5}(\.[0-9]{1,5}){2}\Z")]


class File(msgspec.Struct, frozen=True, kw_only=True):
    """An installer."""

    system: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]{1,20}\Z")]  # a value of sys.platform
    url: Annotated[str, msgspec.Meta(pattern=r"^https://[!-~]{1,500}\Z")]
    sha256: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
    size: Annotated[int, msgspec.Meta(ge=1)]


class Release(msgspec.Struct, frozen=True, kw_only=True):
    version: Number
    date: Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\d\Z")]
    notes: Annotated[str, msgspec.Meta(max_length=4000)]  # from the changelog
    protocol: int  # of the swarm; versions with different numbers cannot train together
    files: tuple[File, ...]


class Feed(msgspec.Struct, frozen=True, kw_only=True):
    """The content that is signed."""

    releases: Annotated[tuple[Release, ...], msgspec.Meta(max_length=100)]


class Signed(msgspec.Struct, frozen=True, kw_only=True):
    """The file on the server: the signed bytes and the signature, both in base64."""

    feed: str
    signature: str


@dataclass(frozen=True)
class UpdateFeed:
    """The feed's address, and the public key in hex. Both may be empty."""

    feed: str
    key: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Only the form: the feed and its key ship with Waggle."""
    add_json(parser)
    add_stdio(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what is newer. Raises UpdateError."""
    newest = ask(shipped_feed(), fetch)
    if arguments.json:
        return say_json({"version": __version__, "newest": newest})
    if newest is None:
        return say_for([Message("Waggle %1 is the newest.", __version__)], window=arguments.stdio)
    lines = [
        Message("Waggle %1 of %2 is newer than this one (%3).", newest.version, newest.date, __version__),
        "",
        *newest.notes.strip().splitlines(),
        "",
    ]
    for file in newest.files:
        if file.system == sys.platform:
            lines += [file.url, f"  {file.size / 2**20:.0f} MiB, sha256 {file.sha256}"]
    lines += ["", Message("Install it over this one whenever you like: what Waggle learned stays.")]
    return say_for(lines, window=arguments.stdio)


def shipped_feed() -> UpdateFeed:
    """The feed that ships with this version of Waggle."""
    source = tomllib.loads((paths.resources() / "updates.toml").read_text(encoding="utf-8"))
    return UpdateFeed(feed=source["feed"], key=source["key"])


def ask(source: UpdateFeed, fetched: Callable[[str], bytes]) -> Release | None:
    """The newest release; None if this one is not older. Raises UpdateError."""
    if not source.key or not source.feed:
        title = "This Waggle was made without a key for updates, so it believes nobody about newer versions."
        raise UpdateError(title, "Look where you got it.")
    releases = read(fetched(source.feed), source.key).releases
    newer = [release for release in releases if _order(release.version) > _order(__version__)]
    return max(newer, key=lambda release: _order(release.version), default=None)


def read(served: bytes, key: str) -> Feed:
    """The feed, after its signature was verified. Raises UpdateError."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if len(served) > MAX_BYTES:
        raise UpdateError("The list of versions is too long to be one.", RETRY_ADVICE)
    try:
        signed = msgspec.json.decode(served, type=Signed)
        content = base64.b64decode(signed.feed, validate=True)
        signature = base64.b64decode(signed.signature, validate=True)
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(signature, DOMAIN + content)
        return msgspec.json.decode(content, type=Feed)
    except InvalidSignature as error:
        raise UpdateError("The list of versions is not signed by Waggle's makers; it was ignored.", RETRY_ADVICE) from error
    except (*UNREADABLE, binascii.Error, ValueError) as error:
        raise UpdateError("The list of versions cannot be read.", RETRY_ADVICE) from error


def fetch(url: str) -> bytes:
    """Download a file, up to a little more than MAX_BYTES. Raises UpdateError."""
    import httpx2

    if not url.startswith("https://"):
        raise UpdateError("The address of the list of versions is not https.", "Look where you got this Waggle.")
    connection_faults.require_usable_settings(UpdateError)
    content = b""
    try:
        with httpx2.stream("GET", url, timeout=SECONDS, follow_redirects=False) as response:
            response.raise_for_status()
            for piece in response.iter_bytes(MAX_BYTES):
                content += piece
                if len(content) > MAX_BYTES:
                    break
    except httpx2.HTTPError as error:
        if cause := connection_faults.cause_of(error):
            raise UpdateError(cause.title, cause.advice) from error
        raise UpdateError("The list of versions cannot be reached.", RETRY_ADVICE) from error
    return content


def _order(version: str) -> tuple[int, ...]:
    """A version as a sort key: 1.10.0 comes after 1.9.0."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
