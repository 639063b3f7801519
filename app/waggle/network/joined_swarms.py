"""The book of swarms: those a person created or joined, with the seeds and gateways of their invites, and which one is active.

Left out: charters, and the keys of private swarms, each in a file of its own.
"""

import os
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec.structs import replace

from waggle.core import paths
from waggle.core.errors import UNREADABLE, SwarmError
from waggle.network.messages.addresses import is_address, is_gateway
from waggle.network.messages.invite import MAX_GATEWAYS, MAX_SEEDS

MOST = 64  # swarms
MAX_BYTES = 1024 * 1024  # more than so many of the longest invites take

Hash = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
HashOrNone = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{64})?\Z")]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """`charter` is the hash in hex; `port` is the one this node was last reached at there, so that invites stay true.

    `only_by_web`: of all that its newest invite names, a gateway alone answered here.
    """

    charter: Hash
    seeds: Annotated[tuple[str, ...], msgspec.Meta(max_length=MAX_SEEDS)] = ()
    gateways: Annotated[tuple[str, ...], msgspec.Meta(max_length=MAX_GATEWAYS)] = ()
    created: bool = False  # here
    added_at: float = 0.0
    members: Annotated[int, msgspec.Meta(ge=0)] = 0  # when it was last asked
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0
    only_by_web: bool = False


class Book(msgspec.Struct, frozen=True, kw_only=True):
    """`active` is empty for the swarm that ships with Waggle."""

    active: HashOrNone = ""
    before: HashOrNone = ""  # that in which a round was played last: what a choice that fails is left for
    entries: Annotated[tuple[Entry, ...], msgspec.Meta(max_length=MOST)] = ()

    def entry(self, charter: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.charter == charter), None)

    def with_entry(self, entry: Entry) -> "Book":
        """With this one added, or in the place of what was known of the same swarm; raises SwarmError for one too many."""
        if self.entry(entry.charter):
            return replace(
                self, entries=tuple(entry if present.charter == entry.charter else present for present in self.entries)
            )
        if len(self.entries) >= MOST:
            raise SwarmError(f"{MOST} swarms are remembered already.", "Forget one first.")
        return replace(self, entries=(*self.entries, entry))

    def without(self, charter: str) -> "Book":
        """With this one forgotten. It is not gone back to: without it that would be another one, and open to all."""
        before = self.active if self.before == charter else self.before
        return replace(self, before=before, entries=tuple(entry for entry in self.entries if entry.charter != charter))


def read(path: Path) -> Book:
    """Empty where there is none. One that is damaged is set aside, and SwarmError says where."""
    try:
        with path.open("rb") as file:
            book = msgspec.json.decode(file.read(MAX_BYTES), type=Book)
    except FileNotFoundError:
        return Book()
    except OSError as error:
        raise SwarmError(f"The list of swarms {path} cannot be read: {error.strerror}.", "Check who owns it.") from error
    except UNREADABLE as error:
        aside = path.with_suffix(".damaged")
        try:
            os.replace(path, aside)
        except OSError as stuck:
            raise SwarmError(f"The list of swarms {path} cannot be read.", "Check who owns it.") from stuck
        raise SwarmError("The list of swarms was damaged and is begun anew.", f"The old one is kept as {aside}.") from error
    sound = (entry for entry in book.entries if all(map(is_address, entry.seeds)) and all(map(is_gateway, entry.gateways)))
    return replace(book, entries=tuple(sound))


def write(path: Path, book: Book) -> None:
    """Raises SwarmError where the disk says no."""
    try:
        paths.write_atomically(path, msgspec.json.format(msgspec.json.encode(book)))
    except OSError as error:
        raise SwarmError(f"The list of swarms cannot be written: {error.strerror}.", "Make room on the disk.") from error
