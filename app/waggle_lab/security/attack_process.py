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

from waggle.core.errors import WaggleError
from waggle.network.identity import keys as identities
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport.interface import PeerAway
from waggle.tasks.charter import Charter
from waggle.tasks.sandbox.verifier import Verifier
from waggle_lab.security.attacker import Attacker
from waggle_lab.security.attacks import ATTACKS, Attack, Scene, poison

ALL = "all at once"
NONE = "none"
POISON = "poison"
CROWD = 40  # made-up names announced in one round
CALLS = 200  # made to every peer in one round
LASTS = 4  # attacks until a peer that is not poisoning comes back under another name


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
    await attacker.flood([peer.peer_id for peer in await attacker.network.daemon.peers()], CALLS)


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
    """`count` hostile nodes. In a siege by all attacks, each poisons under one name and does everything else under another."""

    def __init__(self, pipe: Pipe, orders: Orders, verifier: Verifier, folder: Path) -> None:
        self._pipe, self._orders, self._verifier, self._folder = pipe, orders, verifier, folder
        self._names = itertools.count()
        self._attackers: list[Attacker] = []

    async def run(self) -> None:
        others = [await self._join() for _ in range(self._orders.count)]
        try:
            if self._orders.attack == ALL:
                await self._all_at_once(others)
            else:
                await self._one(others)
        except EOFError:  # the besieged are gone
            pass
        finally:
            await asyncio.gather(*(attacker.close() for attacker in self._attackers))

    async def _one(self, attackers: list[Attacker]) -> None:
        self._pipe.send("ready")
        made = itertools.count(1)
        while (number := await asyncio.to_thread(self._pipe.recv)) is not None:
            for attacker in attackers:
                await self._attack(self._orders.attack, attacker, number)
            self._pipe.send(next(made))

    async def _all_at_once(self, others: list[Attacker]) -> None:
        """Poison every round; beside it one other attack after the other, however long each takes."""
        poisoners = [await self._join() for _ in others]
        rest = [name for name in NAMES if name != POISON]
        trying: asyncio.Task[None] | None = None
        tried = 0
        self._pipe.send("ready")
        try:
            while (number := await asyncio.to_thread(self._pipe.recv)) is not None:
                if trying is not None and trying.done():
                    trying.result()  # raises what only a fault of ours raises
                    trying, tried = None, tried + 1
                    if tried % LASTS == 0:
                        others = await self._renamed(others)
                if trying is None:
                    names = [rest[(tried * len(others) + i) % len(rest)] for i in range(len(others))]
                    trying = asyncio.create_task(self._try(names, others, number))
                for attacker in poisoners:
                    await self._do(poison, attacker, number)
                self._pipe.send(tried)
        finally:
            if trying is not None and not trying.cancel():
                trying.result()

    async def _try(self, names: list[str], attackers: list[Attacker], number: int) -> None:
        for name, attacker in zip(names, attackers, strict=True):
            await self._attack(name, attacker, number)

    async def _renamed(self, attackers: list[Attacker]) -> list[Attacker]:
        await asyncio.gather(*(attacker.close() for attacker in attackers))
        self._attackers = [attacker for attacker in self._attackers if attacker not in attackers]
        return [await self._join() for _ in attackers]

    async def _join(self) -> Attacker:
        attacker = Attacker(identities.load_or_create(self._folder / f"hostile-{next(self._names)}.key"), self._orders.charter)
        self._attackers.append(attacker)
        await attacker.start(SwarmOptions(host="127.0.0.1", seeds=(self._orders.seed_address,)))
        for address in self._orders.victims:
            with suppress(PeerAway):  # one that is busy is met through the directory
                await attacker.network.connect(address)
        return attacker

    async def _attack(self, name: str, attacker: Attacker, number: int) -> None:
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
