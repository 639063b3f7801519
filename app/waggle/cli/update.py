"""`waggle update`: is there a newer version? Asked for by a person, shown to them, and never installed by itself.

The feed is a small JSON file, signed by the key whose public half ships with Waggle; without that key nothing is believed.
A newer version is shown with its address and its sum. The server of the feed can hide one, but cannot offer an older one.
Left out: downloading it. Installers are for the person and the system, who check a signature of their own.
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
from waggle.core import paths, resumable_download
from waggle.core.errors import UNREADABLE, UpdateError

DOMAIN = b"waggle/updates/1\0"  # what this key signs is never mistaken for anything else
MAX_BYTES = 256 * 1024
SECONDS = 20.0
RETRY_ADVICE = "Try again later, or look where you got this Waggle."

Number = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,5}(\.[0-9]{1,5}){2}\Z")]


class File(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to install."""

    system: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]{1,20}\Z")]  # as sys.platform says it
    url: Annotated[str, msgspec.Meta(pattern=r"^https://[!-~]{1,500}\Z")]
    sha256: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
    size: Annotated[int, msgspec.Meta(ge=1)]


class Release(msgspec.Struct, frozen=True, kw_only=True):
    version: Number
    date: Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\d\Z")]
    notes: Annotated[str, msgspec.Meta(max_length=4000)]  # of the changelog, for a person
    protocol: int  # of the swarm: with another number, old and new do not meet
    files: tuple[File, ...]


class Feed(msgspec.Struct, frozen=True, kw_only=True):
    """What is signed."""

    releases: Annotated[tuple[Release, ...], msgspec.Meta(max_length=100)]


class Signed(msgspec.Struct, frozen=True, kw_only=True):
    """What is served: the bytes that were signed and the signature, both in base64."""

    feed: str
    signature: str


@dataclass(frozen=True)
class UpdateFeed:
    """Where to ask and whom to believe; both may be empty."""

    feed: str
    key: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None: the feed and its key ship with Waggle."""


def run(arguments: argparse.Namespace) -> int:
    """Say what is newer; raises UpdateError."""
    newest = ask(shipped(), fetch)
    if newest is None:
        return _say(f"Waggle {__version__} is the newest.")
    lines = [f"Waggle {newest.version} of {newest.date} is newer than this one ({__version__}).", "", newest.notes.strip(), ""]
    for file in newest.files:
        if file.system == sys.platform:
            lines += [file.url, f"  {file.size / 2**20:.0f} MiB, sha256 {file.sha256}"]
    return _say("\n".join([*lines, "", "Install it over this one whenever you like: what Waggle learned stays."]))


def shipped() -> UpdateFeed:
    """As it came with this Waggle."""
    source = tomllib.loads((paths.resources() / "updates.toml").read_text(encoding="utf-8"))
    return UpdateFeed(feed=source["feed"], key=source["key"])


def ask(source: UpdateFeed, fetched: Callable[[str], bytes]) -> Release | None:
    """The newest release that is newer than this one; raises UpdateError."""
    if not source.key or not source.feed:
        title = "This Waggle was made without a key for updates, so it believes nobody about newer versions."
        raise UpdateError(title, "Look where you got it.")
    releases = read(fetched(source.feed), source.key).releases
    newer = [release for release in releases if _order(release.version) > _order(__version__)]
    return max(newer, key=lambda release: _order(release.version), default=None)


def read(served: bytes, key: str) -> Feed:
    """The feed, once its signature is found to be right; raises UpdateError."""
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
    """At most MAX_BYTES and one more; raises UpdateError."""
    import httpx2

    if not url.startswith("https://"):
        raise UpdateError("The address of the list of versions is not https.", "Look where you got this Waggle.")
    resumable_download.require_usable_proxy(UpdateError)
    content = b""
    try:
        with httpx2.stream("GET", url, timeout=SECONDS, follow_redirects=False) as response:
            response.raise_for_status()
            for piece in response.iter_bytes(MAX_BYTES):
                content += piece
                if len(content) > MAX_BYTES:
                    break
    except httpx2.HTTPError as error:
        raise UpdateError("The list of versions cannot be reached.", RETRY_ADVICE) from error
    return content


def _order(version: str) -> tuple[int, ...]:
    """1.10.0 comes after 1.9.0."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def _say(text: str) -> int:
    sys.stdout.write(text + "\n")
    return 0
