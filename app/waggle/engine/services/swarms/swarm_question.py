"""The question in which swarm to train, where the chosen one cannot be had: the engine asks, and goes to no other by itself."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace

from waggle.core import paths
from waggle.core.errors import CharterError, Stopped, SwarmError
from waggle.core.message import Message
from waggle.core.settings import Settings
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.services.swarms import swarm_connection
from waggle.engine.storage.stored_swarm import known_charter, require_stored_key
from waggle.network import joined_swarms
from waggle.network.joined_swarms import JoinedSwarms
from waggle.protocol import events
from waggle.protocol.events_swarms import SwarmUndecided
from waggle.tasks import shipped_swarms
from waggle.tasks.charter import Charter
from waggle.tasks.piece_store import PieceStore

RETRY_SECONDS = 60.0  # until a swarm is looked for again whose charter or key is not here
RESTART_REASON = Message("The swarm is here again.")


@dataclass(frozen=True)
class ChosenSwarm:
    """The charter to train under. `is_stand_in`: alone, because the chosen one cannot be had."""

    charter: Charter
    is_stand_in: bool = False


async def swarm_or_question(
    home: paths.Home, chosen: Settings, publisher: EventPublisher, stopped: asyncio.Event, restart: Callable[[str], None]
) -> ChosenSwarm:
    """The swarm to train in. If it cannot be had, or is not known, ask, and wait until the engine stops or restarts.

    Alone, the model trains meanwhile. A swarm that the settings name, and a choice that can be undone, raise CharterError and
    SwarmError as they are. Raises Stopped.
    """
    known = joined_swarms.read(home.swarms)
    if chosen.swarm.charter and chosen.swarm.charter != known.active:
        return ChosenSwarm(await swarm_connection.charter_of(home, chosen))
    question: SwarmUndecided | None = None
    if known.undecided:
        question = SwarmUndecided(why="unknown" if known.before_lost else "failed")
    else:
        try:
            return ChosenSwarm(await _usable(home, chosen))
        except (CharterError, SwarmError) as error:
            if not known.active or known.active != known.before:
                raise
            question = SwarmUndecided(why="unusable", reason=error.title, advice=error.advice)
    if chosen.swarm.solo:
        stand_in = await asyncio.to_thread(_to_train_alone, home, known.active)
        publisher.publish(
            events.Warned(
                title=Message("Your model trains alone, on questions of %1, until you choose your swarm.", stand_in.name),
                advice=Message("Choose a swarm, and switch training alone off, to train with others."),
                page="swarms",
            )
        )
        return ChosenSwarm(stand_in, is_stand_in=True)
    publisher.publish(replace(question, name=_name_of(home, known.active), known=_names(home, known)))
    while not stopped.is_set():
        try:
            await asyncio.wait_for(stopped.wait(), RETRY_SECONDS)
        except TimeoutError:
            if not known.undecided and await _is_usable(home, chosen):
                restart(RESTART_REASON)
    raise Stopped


async def _usable(home: paths.Home, chosen: Settings) -> Charter:
    """The chosen charter, which can be taken part in. Raises CharterError and SwarmError."""
    charter = await swarm_connection.charter_of(home, chosen)
    if not chosen.swarm.solo:
        require_stored_key(home, charter)
    return charter


async def _is_usable(home: paths.Home, chosen: Settings) -> bool:
    try:
        await _usable(home, chosen)
    except (CharterError, SwarmError):
        return False
    return True


def _to_train_alone(home: paths.Home, active: str) -> Charter:
    """The chosen charter if it and its questions are here, else the default one."""
    default = shipped_swarms.first_swarm()
    charter = _stored(home, active) if active else default
    return default if charter is None or PieceStore(home.questions, charter).missing() else charter


def _names(home: paths.Home, known: JoinedSwarms) -> tuple[str, ...]:
    """The swarms that can be chosen, each with how `waggle swarm join` finds it."""
    stored = [(entry.charter, _stored(home, entry.charter)) for entry in known.entries]
    others = [
        f"{charter.name}{' (private)' if charter.is_private else ''}: {digest}"
        for digest, charter in stored
        if charter is not None and not shipped_swarms.shipped_swarm(digest) and _has_key(home, charter)
    ]
    return (*others, *(charter.name for charter in shipped_swarms.shipped_swarms()))


def _has_key(home: paths.Home, charter: Charter) -> bool:
    try:
        require_stored_key(home, charter)
    except SwarmError:
        return False
    return True


def _name_of(home: paths.Home, digest: str) -> str:
    charter = _stored(home, digest) if digest else None
    return "" if charter is None else charter.name


def _stored(home: paths.Home, digest: str) -> Charter | None:
    try:
        return known_charter(home, digest)
    except CharterError:
        return None
