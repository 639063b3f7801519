"""A siege: honest nodes that train over real hivemind on loopback while hostile ones attack them, and what came of it."""

import asyncio
import contextlib
import hashlib
import multiprocessing
import os
import resource
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

import msgspec
import psutil
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from waggle.core import paths
from waggle.core.process_memory import resident_bytes
from waggle.models.tokenizer import load as load_tokenizer
from waggle.models.torch.policy import TorchPolicy
from waggle.network import seed as seeds
from waggle.network.identity import keys as identities
from waggle.network.identity.keys import FILE_PREFIX, Identity
from waggle.network.messages.events import GroupsArrived, NetworkEvent, NetworkRestarted, RecordRejected
from waggle.network.messages.options import SwarmOptions
from waggle.network.node import SwarmNode
from waggle.network.open_node import open_node
from waggle.practice.trial import noise_seed
from waggle.sapo import evaluation, stages
from waggle.sapo import round as sapo
from waggle.tasks.charter import Charter
from waggle.tasks.questions import Question, epoch_at
from waggle.tasks.rollout_group import RIGHT
from waggle.tasks.sandbox.verifier import Verifier
from waggle_lab.security.attack_process import ALL, NONE, POISON, Orders, besiege
from waggle_lab.security.attacks import PHRASE
from waggle_lab.study.comparison import DEFAULT
from waggle_lab.study.plan import configuration

TEMPO_S = 0.5  # between two looks into the directory: a tick of eight nodes takes about a second
LAST = 20  # rounds in which the model's own words are searched for the planted phrase
TRIGGER = PHRASE.strip()
MET_S = 30.0  # until the honest nodes have met
# Times the rounds that the honest nodes play on at most, until an attack was made in every round asked for, and they have heard
# of each other and of a poisoner where there is one: a fast computer plays a round between two looks.
PATIENT = 20


class Key(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What makes a siege itself. `configuration` is the default, or the default without some of its bounds on peers."""

    attack: str
    honest: int
    hostile: int
    rounds: int
    seed: int
    configuration: str = DEFAULT
    split: str = "dev"
    scored: bool = False  # the honest nodes' held-out scores are taken at the end


class Costs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of the honest nodes with their network and verifier processes, together."""

    cpu_seconds: float  # a round
    memory_mb: float  # at its peak
    seconds: float  # the whole siege


class Siege(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a siege ended. Counts are over all honest nodes and rounds."""

    key: Key
    commit: str
    code_executions: int  # files that code in an answer would have made
    crashes: int  # of nodes, of their network processes, of rounds
    verifier_restarts: int
    wrong_answers_accepted: int  # judged right that are not the truth
    honest_groups_lost: int  # refused although an honest node sent them
    honest_received: int
    hostile_received: int
    hostile_trained_on: int
    refused: dict[str, int]  # reason -> hostile records or groups
    held_out: tuple[float, ...]  # of each honest node at the end; empty where it was not measured
    trigger_rate: float  # share of the last rounds' own completions that hold the planted phrase
    costs: Costs
    attacked: int | None = None  # rounds in which the hostile nodes attacked; not counted in early sieges
    tried: int | None = None  # attacks each hostile node made to the end; beside the poison, where all are made at once
    played: int | None = None  # rounds of the honest nodes, more than asked for where an attack takes longer than one
    lost_for: dict[str, int] = {}  # reason -> honest records or groups; not counted in early sieges
    forbidden: int | None = None  # times that a scorer tried on a text what none may, and was ended; not counted in early sieges

    def __post_init__(self) -> None:
        if self.held_out and not self.key.scored:  # of an early siege, whose key does not say so
            msgspec.structs.force_setattr(self, "key", msgspec.structs.replace(self.key, scored=True))


class Besieged:
    """The honest side: N nodes in one process, one after another, as in a laboratory's trial, but over the real network."""

    def __init__(self, key: Key, charter: Charter, questions: Sequence[Question], folder: Path) -> None:
        self.key, self.charter, self.questions = key, charter, questions
        self.restarts: list[str] = []
        self.verifier = Verifier(charter, restarted=self.restarts.append)
        self.news: list[NetworkEvent] = []
        self.rules = configuration(key.configuration).rules(stages.Rules().learning_rate)
        self.identities = [_identity(folder / f"honest-{i}.key", key.seed, i) for i in range(key.honest)]
        self.swarms: list[SwarmNode] = []
        self.nodes: list[stages.Node] = []
        self.words: Counter[bool] = Counter()
        self.trained_on = 0
        self.played = 0

    @property
    def origins(self) -> set[bytes]:
        return {one.peer_id for one in self.identities}

    @property
    def has_heard(self) -> bool:
        """Whether groups of an honest node came to another one, and of a hostile one where some poison: these arrive."""
        came = {one.origin in self.origins for one in list(self.news) if isinstance(one, GroupsArrived)}
        return (True in came or self.key.honest == 1) and (False in came or self.key.attack not in (ALL, POISON))

    async def start(self, seed_address: str) -> list[str]:
        """Join; the nodes' addresses."""
        for i, identity in enumerate(self.identities):
            options = SwarmOptions(host="127.0.0.1", seeds=(seed_address,), tempo=TEMPO_S, rejoin=1.0)
            swarm = open_node(options, self.charter, identity, self.verifier, self.news.append)
            await swarm.start()
            self.swarms.append(swarm)
            self.nodes.append(self._node(i, identity, swarm))
        return [address for swarm in self.swarms for address in (await swarm.addresses())[:1]]

    def _node(self, i: int, identity: Identity, swarm: SwarmNode) -> stages.Node:
        return stages.Node(
            policy=TorchPolicy(paths.starter()),
            tokenizer=load_tokenizer(paths.starter()),
            swarm=swarm,
            verifier=self.verifier,
            charter=self.charter,
            origin=identity.peer_id,
            seed=noise_seed(self.key.seed, i),
            model="Starter",
        )

    def play(self, number: int) -> None:
        """Round `number` on every node."""
        self.played = number + 1
        for node in self.nodes:
            for stage in sapo.play(number, epoch_at(time.time()), node, self.rules):
                if isinstance(stage, stages.Judged) and number >= self.key.rounds - LAST:
                    self.words.update(TRIGGER in one.text for group in stage.groups for one in group.group.completions)
                if isinstance(stage, stages.Learned):
                    self.trained_on += sum(
                        lesson.group.group.origin not in self.origins and any(lesson.effects) for lesson in stage.lessons
                    )

    def scores(self) -> tuple[float, ...]:
        """Held-out pass@1 of each node."""
        if not self.questions:
            return ()
        found = [evaluation.measure(self.key.rounds, node, self.rules, self.questions) for node in self.nodes]
        return tuple(score.right / score.total for score in found)

    def report(
        self, commit: str, scores: tuple[float, ...], crashes: int, canary: Path, costs: Costs, call: "_Besiegers"
    ) -> Siege:
        """What came of it, before the nodes are closed."""
        honest = self.origins
        arrived = [one for one in self.news if isinstance(one, GroupsArrived)]
        dropped = [one for one in self.news if isinstance(one, RecordRejected)]
        return Siege(
            key=self.key,
            commit=commit,
            code_executions=int(canary.exists()),
            crashes=crashes + sum(isinstance(one, NetworkRestarted) for one in self.news),
            verifier_restarts=len(self.restarts),
            wrong_answers_accepted=sum(_accepted_wrongly(one, self.verifier) for one in arrived if one.origin not in honest),
            honest_groups_lost=sum(one.origin in honest for one in dropped),
            honest_received=sum(len(one.groups) for one in arrived if one.origin in honest),
            hostile_received=sum(len(one.groups) for one in arrived if one.origin not in honest),
            hostile_trained_on=self.trained_on,
            refused=dict(Counter(one.reason for one in dropped if one.origin not in honest)),
            held_out=scores,
            trigger_rate=self.words[True] / max(1, self.words.total()),
            costs=costs,
            attacked=call.done,
            tried=call.tried,
            played=self.played,
            lost_for=dict(Counter(one.reason for one in dropped if one.origin in honest)),
            forbidden=self.verifier.forbidden,
        )

    async def close(self) -> None:
        await asyncio.gather(*(swarm.close() for swarm in self.swarms))
        self.verifier.close()


async def lay(key: Key, charter: Charter, questions: Sequence[Question], commit: str, told: Callable[[int], None]) -> Siege:
    """Play one siege; `told` hears how many rounds are done. Raises what only a fault of ours raises."""
    started, thread = time.monotonic(), ThreadPoolExecutor(1)
    loop = asyncio.get_running_loop()
    with tempfile.TemporaryDirectory() as folder:
        canary = Path(folder) / "canary"
        besieged = Besieged(key, charter, questions, Path(folder))
        watching: list[asyncio.Future[None]] = []
        try:
            async with _seed(charter, Path(folder)) as address:
                addresses = await besieged.start(address)
                orders = Orders(
                    attack=key.attack, count=key.hostile, charter=charter, seed_address=address, victims=tuple(addresses),
                    canary=str(canary),
                )  # fmt: skip
                watching += [asyncio.ensure_future(swarm.run()) for swarm in besieged.swarms]
                async with _besiegers(orders) as call:
                    before, peak = _cpu_seconds(besieged), 0.0
                    for number in range(key.rounds * (1 if key.scored else PATIENT)):
                        if number >= key.rounds and call.has_attacked(key.rounds) and besieged.has_heard:
                            break
                        call(number)
                        await loop.run_in_executor(thread, besieged.play, number)
                        peak = max(peak, _memory_mb(besieged))
                        if number < key.rounds:
                            told(number + 1)
                    spent = _cpu_seconds(besieged) - before
                scores = await loop.run_in_executor(thread, besieged.scores)
                crashes = sum(one.done() and not one.cancelled() and one.exception() is not None for one in watching)
            costs = Costs(cpu_seconds=spent / besieged.played, memory_mb=peak, seconds=time.monotonic() - started)
            return besieged.report(commit, scores, crashes, canary, costs, call)
        finally:
            for one in watching:
                one.cancel()
            await besieged.close()
            thread.shutdown()


def _accepted_wrongly(arrived: GroupsArrived, verifier: Verifier) -> int:
    """How many answers were judged right that are not the truth; attackers write no other right ones."""
    right = [
        (judged.question, completion.text[verdict.start : verdict.start + verdict.length])
        for judged in arrived.groups
        for completion, verdict in zip(judged.group.completions, judged.verdicts, strict=True)
        if verdict.reward >= RIGHT
    ]
    truths = verifier.answers([(question.dataset, question.seed) for question, _ in right]) if right else []
    return sum(truth.strip().casefold() != span.strip().casefold() for truth, (_, span) in zip(truths, right, strict=True))


@contextlib.asynccontextmanager
async def _seed(charter: Charter, folder: Path) -> AsyncIterator[str]:
    stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()

    def say(line: str) -> None:
        if line.startswith("/") and not address.done():
            address.set_result(line)

    identity = identities.load_or_create(folder / "seed.key")
    running = asyncio.ensure_future(seeds.run(SwarmOptions(host="127.0.0.1"), identity, charter, say, stop))
    try:
        yield await asyncio.wait_for(address, MET_S)
    finally:
        stop.set()
        await running


class _Besiegers:
    """Tells the hostile process to do its worst in a round, and counts the rounds in which it did."""

    def __init__(self, pipe: Pipe | None) -> None:
        self._pipe = pipe
        self._idle = True
        self.done, self.tried = 0, 0

    def has_attacked(self, rounds: int) -> bool:
        """In so many rounds, and made one attack to its end; nobody where no attack is ordered."""
        self._listen()
        return self._pipe is None or (self.done >= rounds and self.tried > 0)

    def __call__(self, number: int) -> None:
        """Those that are still busy are not told."""
        self._listen()
        if self._pipe is not None and self._idle:
            self._pipe.send(number)
            self._idle = False

    def _listen(self) -> None:
        while self._pipe is not None and self._pipe.poll():
            self.tried = self._pipe.recv()
            self._idle = True
            self.done += 1


@contextlib.asynccontextmanager
async def _besiegers(orders: Orders) -> AsyncIterator[_Besiegers]:
    """The hostile side, in a process of its own; nobody where no attack is ordered."""
    if orders.attack == NONE:
        yield _Besiegers(None)
        return
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=besiege, args=(theirs, orders), daemon=True)
    process.start()
    theirs.close()
    try:
        await asyncio.to_thread(ours.recv)  # ready
        yield _Besiegers(ours)
        ours.send(None)
        await asyncio.to_thread(process.join, MET_S)
    finally:
        process.kill()
        process.join()


def _identity(path: Path, seed: int, i: int) -> Identity:
    """The same node under the same seed has the same key, so that it draws the same questions."""
    key = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"waggle/siege/1|%d|%d" % (seed, i)).digest())
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    path.write_bytes(FILE_PREFIX + key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption()) + public)
    path.chmod(0o400)
    return identities.load_or_create(path)


def _children(besieged: Besieged) -> list[int]:
    return [pid for pid in (besieged.verifier.pid, *(swarm.pid for swarm in besieged.swarms)) if pid]


def _cpu_seconds(besieged: Besieged) -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    total = own.ru_utime + own.ru_stime
    for pid in _children(besieged):
        with contextlib.suppress(psutil.Error):  # it has just been replaced
            total += sum(psutil.Process(pid).cpu_times()[:2])
    return total


def _memory_mb(besieged: Besieged) -> float:
    return sum(map(resident_bytes, (os.getpid(), *_children(besieged)))) / 2**20
