"""Swarms of an earlier protocol, in which this Waggle cannot train: leaves them at the start, and lists them with the reason."""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from waggle.core import paths
from waggle.core.errors import UNREADABLE, CharterError
from waggle.core.message import Message
from waggle.core.settings import Settings
from waggle.engine.services.models.models import Change
from waggle.network import joined_swarms
from waggle.network.joined_swarms import JoinedSwarm, JoinedSwarms
from waggle.protocol import events, events_swarms
from waggle.tasks import charter as charters
from waggle.tasks import shipped_swarms

# The hash of the charter that shipped with Waggle 0.1.0. No home has a file of it.
EARLIER_FIRST_SWARM = "0af542036492f302e8360f987a68c9dc457e9815d43e05e7c7f300ba364f72fc"


def leave_ended_swarms(home: paths.Home) -> events.Warned | None:
    """Go to First light, the default swarm, if the active one ended. Return what a person has to know, the first time only.

    First light is open to everybody, so from a private swarm nobody goes there without an answer: it stays the active one.
    What is known of the First light that shipped with 0.1.0, such as its seeds, moves to the present one. Raises SwarmError.
    """
    before = joined_swarms.read(home.swarms)
    names = _names(home, before)
    public = {digest: name for digest, name in names.items() if not _is_private(home, digest)}
    after = replace(
        before,
        active=_following(before.active, public),
        before=_following(before.before, public),
        entries=tuple(_without_twins(_following_entry(entry, names) for entry in before.entries)),
    )
    if after == before:
        return None
    joined_swarms.write(home.swarms, after)
    shipped = shipped_swarms.first_swarm().name
    if before.active in public:
        advice = Message("Training continues in %1. The page Swarms says why.", shipped)
        return events.Warned(title=Message("%1 has ended.", names[before.active]), advice=advice, page="swarms")
    if before.entry(EARLIER_FIRST_SWARM):
        title = Message("%1 begins anew: the answers to its questions are checked now.", shipped)
        return events.Warned(
            title=title, advice=Message("Your model, its progress and your name stay."), page="swarms" if names else ""
        )
    return events.Warned(
        title=Message("Swarms that you know have ended."), advice=Message("The page Swarms says why."), page="swarms"
    )


def ended_swarms(home: paths.Home, known: JoinedSwarms) -> tuple[events_swarms.EndedSwarm, ...]:
    """The swarms of the list that ended, with the reason."""
    return tuple(
        events_swarms.EndedSwarm(charter=digest, name=name, why=charters.ended(name).advice)
        for digest, name in _names(home, known).items()
    )


def require_current(home: paths.Home, digest: str) -> None:
    """Raise CharterError if the swarm of this charter ended, as far as this computer knows."""
    if digest == EARLIER_FIRST_SWARM:
        raise CharterError(
            "This invite is to First light as it was before.",
            "Its questions had false answers, and members now agree on levels that were checked. "
            "First light continues with new questions and needs no invite.",
        )
    if name := charters.ended_name(home.swarm(digest).charter_file):
        raise charters.ended(name)


def drop_other_specialties(chosen: Settings, change: Change) -> None:
    """Draw from all specialties if the chosen ones are of a swarm that was left: the one that ships may not have them.

    `chosen`: the settings with the active swarm.
    """
    named = chosen.swarm.charter
    charter = shipped_swarms.shipped_swarm(named) if named else shipped_swarms.first_swarm()
    if charter is None:
        return
    known = charter.datasets_by_name()
    if any(name.casefold() not in known for name in chosen.learning.specialties):
        change({"learning.specialties": None})


def _names(home: paths.Home, known: JoinedSwarms) -> dict[str, str]:
    """The name of each swarm that ended, by its charter hash; without the earlier First light, which continues."""
    named = {entry.charter: charters.ended_name(home.swarm(entry.charter).charter_file) for entry in known.entries}
    return {digest: name for digest, name in named.items() if name and digest != EARLIER_FIRST_SWARM}


def _is_private(home: paths.Home, digest: str) -> bool:
    """Whether a swarm that ended was for those who hold its key."""
    if home.swarm(digest).key.exists():
        return True
    try:
        return bool(msgspec.json.decode(home.swarm(digest).charter_file.read_bytes(), type=dict[str, Any]).get("admission"))
    except (OSError, *UNREADABLE):
        return True


def _following(digest: str, names: dict[str, str]) -> str:
    """The swarm in which a member of this swarm continues; empty: the default swarm."""
    if digest == EARLIER_FIRST_SWARM:
        return shipped_swarms.first_swarm().digest.hex()
    return "" if digest in names else digest


def _following_entry(entry: JoinedSwarm, names: dict[str, str]) -> JoinedSwarm:
    return replace(entry, charter=_following(entry.charter, {}), ended=entry.charter in names)


def _without_twins(entries: Iterable[JoinedSwarm]) -> list[JoinedSwarm]:
    """The entries, with one of each swarm: a home may know First light twice."""
    return list({entry.charter: entry for entry in entries}.values())
