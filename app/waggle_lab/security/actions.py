"""The attacks on the network itself: what a hostile node does in a round of a siege, beside or instead of offering a payload."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from waggle.network.identity import keys
from waggle.network.identity.keys import Identity
from waggle.network.messages import consent
from waggle_lab.security.attacker import Attacker
from waggle_lab.security.attacks import Payload, Scene
from waggle_lab.security.bystander import Bystander
from waggle_lab.security.false_directory import show_crowd, swallow_directory

CROWD_NAMES = 40  # invented identities that are announced in one round
FLOOD_CALLS = 200  # calls to every peer in one round
STALLED_S = 2.0  # in which streams are opened to every peer, in one round
NAMED_BYSTANDERS, ECLIPSE = "named bystanders", "eclipse"


@dataclass(frozen=True)
class Means:
    """What all hostile nodes of a siege share. The `bystander` is present if an attack names it."""

    folder: Path
    bystander: Bystander


async def crowd(attacker: Attacker, scene: Scene, means: Means) -> None:
    await attacker.announce_crowd(_names(scene, means))


async def calls(attacker: Attacker, _scene: Scene, _means: Means) -> None:
    await attacker.flood([peer.peer_id for peer in await attacker.network.daemon.peers()], FLOOD_CALLS)


async def stolen_announcement(attacker: Attacker, _scene: Scene, _means: Means) -> None:
    await attacker.steal()


async def stalled_streams(attacker: Attacker, _scene: Scene, _means: Means) -> None:
    """A flood below Python: streams whose few bytes make p2pd wait for 4 MiB each."""
    for peer in await attacker.network.daemon.peers():
        await attacker.declare_calls(peer.peer_id, STALLED_S)


async def named_bystanders(attacker: Attacker, scene: Scene, means: Means) -> None:
    """Made-up names say that a bystander gives out their payloads, with a consent that it never gave."""
    forged = consent.give(attacker.identity, scene.charter.digest, attacker.identity.peer_id, time.time())
    changes: dict[str, Any] = {"via": (means.bystander.identity.peer_id,), "consents": (forged,)}
    names = _names(scene, means)
    attacker.offer(Payload(b"nothing", epoch=scene.epoch, changes=changes))
    await attacker.announce()
    await attacker.announce_crowd(names, **changes)
    show_crowd(attacker.network, scene.charter.digest, names, changes)


async def eclipse(attacker: Attacker, scene: Scene, _means: Means) -> None:
    """Sit around the directory's key, take every entry, give none, and name neighbours there that do not exist."""
    swallow_directory(attacker.network, scene.charter.digest)


def _names(scene: Scene, means: Means) -> list[Identity]:
    names = [f"crowd-{scene.round}-{i}-{time.monotonic_ns()}" for i in range(CROWD_NAMES)]
    return [keys.load_or_create(means.folder / name) for name in names]


ACTIONS: dict[str, Callable[[Attacker, Scene, Means], Awaitable[None]]] = {
    "crowd of made-up names": crowd,
    "flood of calls": calls,
    "stolen announcement": stolen_announcement,
    "stalled streams": stalled_streams,
    NAMED_BYSTANDERS: named_bystanders,
    ECLIPSE: eclipse,
}
