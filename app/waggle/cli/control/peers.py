"""`waggle peers` lists the peers that this node knows; `mute`, `block` and `welcome` choose how to treat one of them."""

import argparse
import time
from collections.abc import Iterable

from msgspec.structs import replace

from waggle.cli.shared.engine import ask, engine_runs, status
from waggle.cli.shared.options import add_home, text
from waggle.cli.shared.printing import add_json, say, say_json
from waggle.core import paths
from waggle.core.errors import EngineError
from waggle.core.peer_id import peer_id_of
from waggle.engine.control import server
from waggle.engine.services.swarms.swarm_connection import peer_info
from waggle.network.identity.keys import name_of
from waggle.network.limits import reputation_file
from waggle.network.limits.reputation import PeerReputation
from waggle.protocol import commands, events
from waggle.protocol.text.peer_text import standing_text

CHOICES: dict[str, events.Choice] = {"mute": "muted", "block": "blocked", "welcome": ""}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)
    if parser.get_default("command") in CHOICES:
        parser.add_argument("peer", type=text, metavar="PEER", help="the peer's id, as `waggle peers` lists it")


def run(arguments: argparse.Namespace) -> int:
    """Choose, then list the peers. Without an engine, both are about what this home remembers. Raises EngineError."""
    home, runs = paths.home_in(arguments.home), engine_runs(paths.home_in(arguments.home))
    if arguments.command in CHOICES:
        choice = CHOICES[arguments.command]
        if runs:
            ask(home, commands.ChoosePeer(id=commands.new_id(), peer=arguments.peer, choice=choice))
        else:
            _choose_here(home, arguments.peer, choice)
    gone = (peer_info(replace(peer, connection="gone")) for peer in ([] if runs else _remembered(home)))
    peers = sorted_peers(status(home).peers.values() if runs else gone)
    return say_json(peers) if arguments.json else say(list_peers(peers, time.time()))


def sorted_peers(peers: Iterable[events.PeerInfo]) -> list[events.PeerInfo]:
    """Connected ones first, then by what came from them."""
    return sorted(peers, key=lambda peer: (peer.connection == "gone", -peer.received, peer.name))


def list_peers(peers: Iterable[events.PeerInfo], now: float) -> str:
    """One line for each peer."""
    return "\n".join(f"{peer.name}  {peer.id}  {standing_text(peer, now)}" for peer in peers) or "No peer has been met yet."


def _remembered(home: paths.Home) -> list[PeerReputation]:
    """Raises EngineError."""
    if reputation_file.is_damaged(home.reputation):  # reading would set it aside, and the engine has to report that
        raise EngineError(f"What was known of peers cannot be read: {home.reputation}.", "The engine repairs it when it starts.")
    return reputation_file.read(home.reputation) or []


def _choose_here(home: paths.Home, peer: str, choice: events.Choice) -> None:
    """Write the choice down for the next engine. Raises EngineError."""
    try:
        peer_id = peer_id_of(peer)
    except ValueError as error:
        raise EngineError(f"{peer} is no peer's id.", "Copy it whole: `waggle peers` lists them.") from error
    lock = server.claim_home(home.prepare())
    try:
        known = _remembered(home)
        chosen = next((each for each in known if each.id == peer_id), PeerReputation(id=peer_id, name=name_of(peer_id)))
        others = [each for each in known if each.id != peer_id]
        reputation_file.write(home.reputation, [replace(chosen, choice=choice), *others])
    finally:
        lock.release()
