"""The hostile side of a siege, in a process of its own: real peers that do one attack, or all at once, round after round."""

import asyncio
import itertools
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

import msgspec

from waggle.errors import WaggleError
from waggle.lab.attacker import Attacker
from waggle.lab.attacks import ATTACKS, Attack, Scene, poison
from waggle.swarm import identity as identities
from waggle.swarm.dht import PeerAway
from waggle.swarm.options import SwarmOptions
from waggle.tasks.charter import Charter
from waggle.tasks.verifier import Verifier

ALL = "all at once"
NONE = "none"
POISON = "poison"
CROWD = 40  # made-up names announced in one round
CALLS = 200  # made to every peer in one round
LASTS = 4  # rounds until a peer that is not poisoning comes back under another name


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """What besiegers are told once."""

    attack: str
    count: int
    charter: Charter
    seed_address: str
    victims: tuple[str, ...]  # their addresses
    canary: str


async def _crowd(attacker: Attacker, scene: Scene, folder: Path) -> None:
    names = [identities.load_or_create(folder / f"crowd-{scene.round}-{i}-{time.monotonic_ns()}") for i in range(CROWD)]
    await attacker.announce_crowd(names)


async def _calls(attacker: Attacker, _scene: Scene, _folder: Path) -> None:
    await attacker.flood([peer.peer_id for peer in await attacker.dht.peers()], CALLS)


async def _stolen_announcement(attacker: Attacker, _scene: Scene, _folder: Path) -> None:
    await attacker.steal()


ACTIONS: dict[str, Callable[[Attacker, Scene, Path], Awaitable[None]]] = {
    "crowd of made-up names": _crowd,
    "flood of calls": _calls,
    "stolen announcement": _stolen_announcement,
}
NAMES = (*ATTACKS, *ACTIONS)


def besiege(pipe: Pipe, orders: Orders) -> None:
    """The process: reports each round done; ends when the pipe says so or closes."""
    verifier = Verifier(orders.charter)
    try:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(_Camp(pipe, orders, verifier, Path(folder)).run())
    finally:
        verifier.close()


class _Camp:
    """`count` hostile nodes. In a siege by all attacks, each poisons under one name and does everything else under others."""

    def __init__(self, pipe: Pipe, orders: Orders, verifier: Verifier, folder: Path) -> None:
        self._pipe, self._orders, self._verifier, self._folder = pipe, orders, verifier, folder
        self._names = itertools.count()
        self._attackers: list[Attacker] = []

    async def run(self) -> None:
        everything = self._orders.attack == ALL
        poisoners = [await self._join() for _ in range(self._orders.count)] if everything else []
        others = [await self._join() for _ in range(self._orders.count)]
        rest = [name for name in NAMES if name != POISON]
        self._pipe.send("ready")
        try:
            while (number := await asyncio.to_thread(self._pipe.recv)) is not None:
                for attacker in poisoners:
                    await self._do(poison, attacker, number)
                for i, attacker in enumerate(others):
                    await self._attack(rest[(number * len(others) + i) % len(rest)] if everything else None, attacker, number)
                if everything and number % LASTS == LASTS - 1:
                    await asyncio.gather(*(attacker.close() for attacker in others))
                    self._attackers = [attacker for attacker in self._attackers if attacker not in others]
                    others = [await self._join() for _ in others]
                self._pipe.send(number)
        except EOFError:  # the besieged are gone
            pass
        finally:
            await asyncio.gather(*(attacker.close() for attacker in self._attackers))

    async def _join(self) -> Attacker:
        attacker = Attacker(identities.load_or_create(self._folder / f"hostile-{next(self._names)}.key"), self._orders.charter)
        self._attackers.append(attacker)
        await attacker.start(SwarmOptions(host="127.0.0.1", seeds=(self._orders.seed_address,)))
        for address in self._orders.victims:
            with suppress(PeerAway):  # one that is busy is met through the directory
                await attacker.dht.connect(address)
        return attacker

    async def _attack(self, name: str | None, attacker: Attacker, number: int) -> None:
        name = name or self._orders.attack
        if name in ATTACKS:
            await self._do(ATTACKS[name], attacker, number)
        else:
            await ACTIONS[name](attacker, self._scene(attacker, number), self._folder)

    async def _do(self, attack: Attack, attacker: Attacker, number: int) -> None:
        with suppress(WaggleError):  # an attack that cannot even be made does no harm
            await attacker.attack(attack, self._scene(attacker, number))

    def _scene(self, attacker: Attacker, number: int) -> Scene:
        return Scene(
            charter=self._orders.charter, verifier=self._verifier, identity=attacker.identity, now=time.time(), round=number + 1,
            canary=self._orders.canary,
        )  # fmt: skip
