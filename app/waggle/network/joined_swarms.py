"""The list of swarms that the person created or joined, with the seeds and gateways of their invites, and the active one.

Charters, and the keys of private swarms, have files of their own.
"""

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec.structs import replace

from waggle.core import paths
from waggle.core.errors import UNREADABLE, SwarmError
from waggle.core.message import Message
from waggle.core.system.os_faults import fault_of
from waggle.network.messages.addresses import is_address, is_gateway
from waggle.network.messages.invite import MAX_GATEWAYS, MAX_SEEDS

MAX_SWARMS = 64  # swarms
MAX_BYTES = 1024 * 1024  # more than MAX_SWARMS of the longest invites need

Hash = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
HashOrNone = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{64})?\Z")]


class JoinedSwarm(msgspec.Struct, frozen=True, kw_only=True):
    """`charter` is the hash in hex. `port` is the port at which this node was last reached there, so that invites stay valid.

    `only_by_web`: of the addresses in the newest invite, only gateways answered.
    """

    charter: Hash
    seeds: Annotated[tuple[str, ...], msgspec.Meta(max_length=MAX_SEEDS)] = ()
    gateways: Annotated[tuple[str, ...], msgspec.Meta(max_length=MAX_GATEWAYS)] = ()
    created: bool = False  # on this computer
    added_at: float = 0.0
    members: Annotated[int, msgspec.Meta(ge=0)] = 0  # when the swarm was last looked at
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0
    only_by_web: bool = False
    for_class: bool = False  # created here for a class: this computer serves its page
    member_name: str = ""  # that the person chose for the members of this private swarm
    ended: bool = False  # its charter is of an earlier protocol, and the person was informed


class JoinedSwarms(msgspec.Struct, frozen=True, kw_only=True):
    """`active` is empty for First light, the default swarm, without others. A swarm that ships with Waggle needs no entry."""

    active: HashOrNone = ""
    before: HashOrNone = ""  # the swarm of the last round: where to return if a choice fails
    entries: Annotated[tuple[JoinedSwarm, ...], msgspec.Meta(max_length=MAX_SWARMS)] = ()
    undecided: bool = False  # a person has to choose a swarm: `active` is not known, or could not be entered
    before_lost: bool = False  # `before` is not known: a choice that fails leads back to the question

    def entry(self, charter: str) -> JoinedSwarm | None:
        """The swarm with this charter hash."""
        return next((entry for entry in self.entries if entry.charter == charter), None)

    def with_entry(self, entry: JoinedSwarm) -> "JoinedSwarms":
        """A copy in which this swarm is added or replaced; raises SwarmError if there are too many."""
        if self.entry(entry.charter):
            return replace(
                self, entries=tuple(entry if present.charter == entry.charter else present for present in self.entries)
            )
        if len(self.entries) >= MAX_SWARMS:
            raise SwarmError(Message("%1 swarms are remembered already.", MAX_SWARMS), "Forget one first.")
        return replace(self, entries=(*self.entries, entry))

    def without(self, charter: str) -> "JoinedSwarms":
        """A copy without this swarm, which is no longer a place to return to: without its entry it would be a public one."""
        before = self.active if self.before == charter else self.before
        return replace(self, before=before, entries=tuple(entry for entry in self.entries if entry.charter != charter))


class SwarmListDamaged(SwarmError):
    """The list of swarms has no content that can be read. The engine rebuilds it at its next start."""


def read(path: Path) -> JoinedSwarms:
    """Read the list; empty if there is no file. A damaged file stays where it is: raises SwarmListDamaged, and SwarmError."""
    try:
        with path.open("rb") as file:
            book = msgspec.json.decode(file.read(MAX_BYTES), type=JoinedSwarms)
    except FileNotFoundError:
        return JoinedSwarms()
    except OSError as error:
        raise SwarmError(
            Message("The list of swarms %1 cannot be read: %2.", path, fault_of(error).reason), fault_of(error).advice
        ) from error
    except UNREADABLE as error:
        raise SwarmListDamaged(
            Message("The list of swarms %1 is damaged.", path), "The next start puts it together again."
        ) from error
    sound = map(_sound, book.entries)
    return replace(
        book,
        entries=tuple(
            after for before, after in zip(book.entries, sound, strict=True) if _is_found(after) or not _is_found(before)
        ),
    )


def member_name_in(path: Path, charter: str) -> str:
    """The name that the person chose in this swarm; empty if none. Raises SwarmError."""
    entry = read(path).entry(charter)
    return entry.member_name if entry is not None else ""


def write(path: Path, book: JoinedSwarms) -> None:
    """Write the list; raises SwarmError if the disk refuses."""
    try:
        paths.write_atomically(path, msgspec.json.format(msgspec.json.encode(book)))
    except OSError as error:
        raise SwarmError(
            Message("The list of swarms cannot be written: %1.", fault_of(error).reason), fault_of(error).advice
        ) from error


def _sound(entry: JoinedSwarm) -> JoinedSwarm:
    """The swarm without what is no address, or none any more."""
    return replace(entry, seeds=tuple(filter(is_address, entry.seeds)), gateways=tuple(filter(is_gateway, entry.gateways)))


def _is_found(entry: JoinedSwarm) -> bool:
    return bool(entry.seeds or entry.gateways)
