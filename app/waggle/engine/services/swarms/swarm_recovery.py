"""Puts the list of swarms together again from what is still there: charters, keys, addresses of members, and the record.

Which swarm was the active one stands in the list only. Where it may have been another than the shipped ones, a person is asked.
"""

import logging
import re
import time
from pathlib import Path

from msgspec.structs import replace

from waggle.core import damaged_file, paths
from waggle.core.errors import SwarmError
from waggle.core.message import NOTHING, Message
from waggle.engine.runtime.event_publisher import oldest_first
from waggle.engine.services.swarms.ended_swarms import EARLIER_FIRST_SWARM
from waggle.network import joined_swarms
from waggle.network.joined_swarms import MAX_SWARMS, JoinedSwarm, JoinedSwarms, SwarmListDamaged
from waggle.protocol import events, json_lines
from waggle.protocol.state import Snapshot
from waggle.tasks import shipped_swarms

HASH = re.compile(r"[0-9a-f]{64}")
log = logging.getLogger(__name__)


def recover(home: paths.Home) -> events.Warned | None:
    """At a start: rebuild a list that is damaged, or gone although there are traces of swarms; return what a person has to know.

    A new home gets an empty list, so that a list that is not there is always one that was lost. Raises SwarmError.
    """
    aside: Path | None = None
    try:
        joined_swarms.read(home.swarms)
        if home.swarms.exists():
            return None
        rebuilt = _rebuilt(home)
        if not rebuilt.undecided:
            _begin(home)
            return None
    except SwarmListDamaged:
        rebuilt = _rebuilt(home)
        aside = _set_aside(home)
    joined_swarms.write(home.swarms, rebuilt)
    return events.Warned(
        title=Message("The list of your swarms was damaged. Waggle found your swarms in other files.")
        if aside
        else Message("The list of your swarms was gone. Waggle found your swarms in other files."),
        advice=Message("The old one is kept beside it as %1.", aside.name) if aside else NOTHING,
        page="swarms",
    )


def read_or_rebuild(home: paths.Home, present: JoinedSwarms) -> JoinedSwarms:
    """While an engine runs: read the list. One that was lost since is rebuilt with what this run knows. Raises SwarmError.

    `present`: the list as it was when this run began.
    """
    try:
        known = joined_swarms.read(home.swarms)
        if home.swarms.exists():
            return known
    except SwarmListDamaged:
        _set_aside(home)
    from_traces = _rebuilt(home)
    rebuilt = present if present != JoinedSwarms() else from_traces  # nothing was known: the traces decide, and perhaps a person
    for entry in from_traces.entries:
        if rebuilt.entry(entry.charter) is None and len(rebuilt.entries) < MAX_SWARMS:
            rebuilt = rebuilt.with_entry(entry)
    joined_swarms.write(home.swarms, rebuilt)
    log.info("the list of swarms was lost during the run, and is written again")
    return rebuilt


def _begin(home: paths.Home) -> None:
    """Write the empty list of a new home. A disk that refuses is reported by others."""
    try:
        joined_swarms.write(home.swarms, JoinedSwarms())
    except SwarmError as error:
        log.info("no list of swarms is begun: %s", error)


def _set_aside(home: paths.Home) -> Path:
    try:
        return damaged_file.set_aside(home.swarms)
    except OSError as error:
        raise SwarmError(Message("The list of swarms %1 cannot be set aside.", home.swarms), "Check who owns it.") from error


def _rebuilt(home: paths.Home) -> JoinedSwarms:
    """The list as far as the other files tell it. It is undecided if there are traces of another swarm than the shipped ones."""
    last = _last_swarm(home.events)
    joined = {file.stem: _changed_at(file) for file in sorted(home.charters.glob("*")) if _is_other(file)}
    of_swarm = home.swarm("any")
    traces = [file.stem for folder in (of_swarm.known_peers.parent, of_swarm.scores.parent) for file in folder.glob("*")]
    others = {digest for digest in (*traces, last) if HASH.fullmatch(digest) and not _is_shipped(digest)} | joined.keys()
    entries = tuple(JoinedSwarm(charter=digest, added_at=at) for digest, at in joined.items())[:MAX_SWARMS]
    known = JoinedSwarms(active=_active(last), entries=entries)
    return replace(known, before=known.active, undecided=bool(others), before_lost=bool(others))


def _active(last: str) -> str:
    """The swarm of the last run, as the list names it; a guess, which only shipped swarms need no answer for."""
    return "" if last in (shipped_swarms.first_swarm().digest.hex(), EARLIER_FIRST_SWARM) else last


def _is_other(file: Path) -> bool:
    """Whether this is the charter or the key of a swarm that does not ship with Waggle."""
    return file.suffix in (".json", ".key") and HASH.fullmatch(file.stem) is not None and not _is_shipped(file.stem)


def _is_shipped(digest: str) -> bool:
    return digest == EARLIER_FIRST_SWARM or shipped_swarms.shipped_swarm(digest) is not None


def _changed_at(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:  # removed meanwhile
        return 0.0


def _last_swarm(record: Path) -> str:
    """The charter hash of the swarm that the newest record names last; empty if none does."""
    for file in reversed(oldest_first(record, time.time())):
        last = ""
        try:
            for event in json_lines.recording(file):
                match event:
                    case events.Ready():
                        last = event.charter
                    case Snapshot() if event.state.ready is not None:
                        last = event.state.ready.charter
                    case _:
                        pass
        except OSError as error:
            log.info("%s cannot be read: %s", file, error)
        if last:
            return last if HASH.fullmatch(last) else ""
    return ""
