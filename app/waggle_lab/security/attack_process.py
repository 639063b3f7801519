"""The hostile side of a siege, a process of its own: real peers that repeat one attack, or make all attacks, round by round."""

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
from waggle.network.identity import keys
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport.interface import PeerAway
from waggle.tasks.charter import Charter
from waggle.tasks.sandbox.verifier import Verifier
from waggle_lab.security.attacker import Attacker
from waggle_lab.security.attacks import ATTACKS, Attack, Scene, poison

ALL_ATTACKS = "all at once"
NO_ATTACK = "none"
POISON = "poison"
CROWD_NAMES = 40  # invented identities that are announced in one round
FLOOD_CALLS = 200  # calls to every peer in one round
ATTACKS_BEFORE_RENAMING = 4  # an attacker that does not poison takes a new identity after so many attacks


class AttackOrders(msgspec.Struct, frozen=True, kw_only=True):
    """What the attackers need to know, sent once at the start."""

    attack: str
    count: int
    charter: Charter
    seed_address: str
    victims: tuple[str, ...]  # addresses
    canary: str


async def _crowd(attacker: Attacker, scene: Scene, folder: Path) -> None:
    identities = [keys.load_or_create(folder / f"crowd-{scene.round}-{i}-{time.monotonic_ns()}") for i in range(CROWD_NAMES)]
    await attacker.announce_crowd(identities)


async def _calls(attacker: Attacker, _scene: Scene, _folder: Path) -> None:
    await attacker.flood([peer.peer_id for peer in await attacker.network.daemon.peers()], FLOOD_CALLS)


async def _stolen_announcement(attacker: Attacker, _scene: Scene, _folder: Path) -> None:
    await attacker.steal()


ACTIONS: dict[str, Callable[[Attacker, Scene, Path], Awaitable[None]]] = {
    "crowd of made-up names": _crowd,
    "flood of calls": _calls,
    "stolen announcement": _stolen_announcement,
}
NAMES = (*ATTACKS, *ACTIONS)


def run_attackers(pipe: Pipe, orders: AttackOrders) -> None:
    """Run the hostile process: it attacks once for each number from the pipe, and replies. None or a closed pipe ends it."""
    verifier = Verifier(orders.charter)
    try:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(_AttackerTeam(pipe, orders, verifier, Path(folder)).run())
    finally:
        verifier.close()


class _AttackerTeam:
    """`count` hostile nodes. In a siege by all attacks, each poisons under one identity and makes the others under another."""

    def __init__(self, pipe: Pipe, orders: AttackOrders, verifier: Verifier, folder: Path) -> None:
        self._pipe, self._orders, self._verifier, self._folder = pipe, orders, verifier, folder
        self._names = itertools.count()
        self._attackers: list[Attacker] = []

    async def run(self) -> None:
        others = [await self._join() for _ in range(self._orders.count)]
        try:
            if self._orders.attack == ALL_ATTACKS:
                await self._all_at_once(others)
            else:
                await self._repeat_attack(others)
        except EOFError:  # the honest side has ended
            pass
        finally:
            await asyncio.gather(*(attacker.close() for attacker in self._attackers))

    async def _repeat_attack(self, attackers: list[Attacker]) -> None:
        self._pipe.send("ready")
        finished_attacks = itertools.count(1)
        while (number := await asyncio.to_thread(self._pipe.recv)) is not None:
            for attacker in attackers:
                await self._attack(self._orders.attack, attacker, number)
            self._pipe.send(next(finished_attacks))

    async def _all_at_once(self, others: list[Attacker]) -> None:
        """Poison in every round, and beside it make the other attacks one after the other, however long each takes."""
        poisoners = [await self._join() for _ in others]
        other_attacks = [name for name in NAMES if name != POISON]
        current_attacks: asyncio.Task[None] | None = None
        attacks_made = 0
        self._pipe.send("ready")
        try:
            while (number := await asyncio.to_thread(self._pipe.recv)) is not None:
                if current_attacks is not None and current_attacks.done():
                    current_attacks.result()  # raises only errors of our own code
                    current_attacks, attacks_made = None, attacks_made + 1
                    if attacks_made % ATTACKS_BEFORE_RENAMING == 0:
                        others = await self._rejoin_renamed(others)
                if current_attacks is None:
                    names = [other_attacks[(attacks_made * len(others) + i) % len(other_attacks)] for i in range(len(others))]
                    current_attacks = asyncio.create_task(self._attack_in_turn(names, others, number))
                for attacker in poisoners:
                    await self._offer(poison, attacker, number)
                self._pipe.send(attacks_made)
        finally:
            if current_attacks is not None and not current_attacks.cancel():
                current_attacks.result()

    async def _attack_in_turn(self, names: list[str], attackers: list[Attacker], number: int) -> None:
        for name, attacker in zip(names, attackers, strict=True):
            await self._attack(name, attacker, number)

    async def _rejoin_renamed(self, attackers: list[Attacker]) -> list[Attacker]:
        await asyncio.gather(*(attacker.close() for attacker in attackers))
        self._attackers = [attacker for attacker in self._attackers if attacker not in attackers]
        return [await self._join() for _ in attackers]

    async def _join(self) -> Attacker:
        attacker = Attacker(keys.load_or_create(self._folder / f"hostile-{next(self._names)}.key"), self._orders.charter)
        self._attackers.append(attacker)
        await attacker.start(SwarmOptions(host="127.0.0.1", seeds=(self._orders.seed_address,)))
        for address in self._orders.victims:
            with suppress(PeerAway):  # a busy node is found through the directory
                await attacker.network.connect(address)
        return attacker

    async def _attack(self, name: str, attacker: Attacker, number: int) -> None:
        if name in ATTACKS:
            await self._offer(ATTACKS[name], attacker, number)
        else:
            await ACTIONS[name](attacker, self._scene(attacker, number), self._folder)

    async def _offer(self, attack: Attack, attacker: Attacker, number: int) -> None:
        with suppress(WaggleError):  # an attack that fails does no harm
            await attacker.attack(attack, self._scene(attacker, number))

    def _scene(self, attacker: Attacker, number: int) -> Scene:
        return Scene(
            charter=self._orders.charter, verifier=self._verifier, identity=attacker.identity, now=time.time(), round=number + 1,
            canary=self._orders.canary,
        )  # fmt: skip
