"""The hostile side of a siege, a process of its own: real peers that repeat one attack, or make all attacks, round by round."""

import asyncio
import itertools
import tempfile
import time
from contextlib import AsyncExitStack, suppress
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

import msgspec
import psutil

from waggle.core.errors import WaggleError
from waggle.network.identity import keys
from waggle.network.identity.keys import Identity
from waggle.network.messages import directory
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport.interface import PeerAway
from waggle.tasks.charter import Charter
from waggle.tasks.sandbox.verifier import Verifier
from waggle_lab.security.actions import ACTIONS, ECLIPSE, NAMED_BYSTANDERS, Means
from waggle_lab.security.attacker import Attacker
from waggle_lab.security.attacks import ATTACKS, Attack, Payload, Scene, poison
from waggle_lab.security.bystander import Bystander
from waggle_lab.security.lessons import LESSONS
from waggle_lab.security.lessons.interface import apart
from waggle_lab.security.near_names import ground_keys
from waggle_lab.security.sieges.identities import with_key
from waggle_lab.security.sieges.prices import AttackerPrice

ALL_ATTACKS = "all at once"
NO_ATTACK = "none"
POISON = "poison"
TAUGHT_BY_ATTACKS = ("chosen answers", "planted phrase")  # lessons that `steer` and `poison` of ATTACKS teach
LIVE_LESSONS = {name: lesson for name, lesson in LESSONS.items() if name not in TAUGHT_BY_ATTACKS}
ATTACKS_BEFORE_RENAMING = 4  # an attacker that does not poison takes a new identity after so many attacks


class AttackOrders(msgspec.Struct, frozen=True, kw_only=True):
    """What the attackers need to know, sent once at the start."""

    attack: str
    count: int
    charter: Charter
    seed_address: str
    victims: tuple[str, ...]  # addresses
    canary: str


class AttackTotals(msgspec.Struct, frozen=True, kw_only=True):
    """What the hostile process says at its end."""

    price: AttackerPrice
    bystander_calls: int | None  # None: no attack named a bystander


NAMES = (*ATTACKS, *LIVE_LESSONS, *ACTIONS)


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
        self._means = Means(folder, Bystander(keys.load_or_create(folder / "bystander.key")))
        self._lessons: dict[tuple[Attacker, str], Attack] = {}  # by attacker and name
        self._names = itertools.count()
        self._attackers: list[Attacker] = []
        self._answers, self._gone_bytes = 0, 0

    async def run(self) -> None:
        names_bystander = self._orders.attack in (NAMED_BYSTANDERS, ALL_ATTACKS)
        async with AsyncExitStack() as present:
            others = [await self._join() for _ in range(self._orders.count)]
            try:
                if names_bystander:
                    await present.enter_async_context(self._means.bystander.present(self._orders.seed_address))
                if self._orders.attack == ALL_ATTACKS:
                    await self._all_at_once(others)
                else:
                    await self._repeat_attack(others)
                self._pipe.send(self._totals(names_bystander=names_bystander))
            except (EOFError, BrokenPipeError):  # the honest side has ended
                pass
            finally:
                await asyncio.gather(*(attacker.close() for attacker in self._attackers))

    def _totals(self, *, names_bystander: bool) -> AttackTotals:
        own = psutil.Process()
        cpu_seconds = sum(own.cpu_times()[:2])
        for child in own.children(recursive=True):
            with suppress(psutil.Error):  # it has just ended
                cpu_seconds += sum(child.cpu_times()[:2])
        sent_bytes = self._gone_bytes + sum(attacker.written for attacker in self._attackers)
        price = AttackerPrice(answers=self._answers, sent_bytes=sent_bytes, cpu_seconds=cpu_seconds)
        return AttackTotals(price=price, bystander_calls=len(self._means.bystander.calls) if names_bystander else None)

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
        self._gone_bytes += sum(attacker.written for attacker in attackers)
        self._attackers = [attacker for attacker in self._attackers if attacker not in attackers]
        return [await self._join() for _ in attackers]

    async def _join(self) -> Attacker:
        attacker = Attacker(self._identity(next(self._names)), self._orders.charter)
        self._attackers.append(attacker)
        await attacker.start(SwarmOptions(host="127.0.0.1", seeds=(self._orders.seed_address,)))
        for address in self._orders.victims:
            with suppress(PeerAway):  # a busy node is found through the directory
                await attacker.network.connect(address)
        return attacker

    def _identity(self, number: int) -> Identity:
        """A fresh key: near the directory's key for an eclipse; the same for all where the lesson says so."""
        path = self._folder / f"hostile-{number}.key"
        if self._orders.attack == ECLIPSE:
            ((private, _),) = ground_keys(directory.key_of(self._orders.charter.digest, 0, 0), 1)
            return with_key(path, private)
        one_key = self._orders.attack in LIVE_LESSONS and LIVE_LESSONS[self._orders.attack].one_key
        return keys.load_or_create(self._folder / "hostile.key" if one_key else path)

    async def _attack(self, name: str, attacker: Attacker, number: int) -> None:
        if name in ATTACKS:
            await self._offer(ATTACKS[name], attacker, number)
        elif name in LIVE_LESSONS:
            place = attacker, name
            if place not in self._lessons:
                self._lessons[place] = apart(LIVE_LESSONS[name], sum(taught == name for _, taught in self._lessons))
            await self._offer(self._lessons[place], attacker, number)
        else:
            await ACTIONS[name](attacker, self._scene(attacker, number), self._means)

    async def _offer(self, attack: Attack, attacker: Attacker, number: int) -> None:
        def counted(scene: Scene) -> Payload:
            payload = attack(scene)
            self._answers += payload.answers
            return payload

        with suppress(WaggleError):  # an attack that fails does no harm
            await attacker.attack(counted, self._scene(attacker, number))

    def _scene(self, attacker: Attacker, number: int) -> Scene:
        return Scene(
            charter=self._orders.charter, verifier=self._verifier, identity=attacker.identity, now=time.time(), round=number + 1,
            canary=self._orders.canary,
        )  # fmt: skip
