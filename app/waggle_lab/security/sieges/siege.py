"""A siege: honest nodes train over real hivemind on loopback while hostile nodes attack them."""

import asyncio
import contextlib
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

from waggle.core import paths
from waggle.core.system.process_memory import resident_bytes
from waggle.models.tokenizer import load as load_tokenizer
from waggle.models.torch.policy import TorchPolicy
from waggle.network import seed as seed_node
from waggle.network.identity import keys
from waggle.network.identity.keys import Identity
from waggle.network.messages.events import GroupsArrived, NetworkEvent, NetworkRestarted, RecordRejected
from waggle.network.messages.options import SwarmOptions
from waggle.network.node import SwarmNode
from waggle.network.open_node import open_node
from waggle.practice.trial import noise_seed
from waggle.sapo import evaluation, stages
from waggle.sapo.round import play as play_round
from waggle.tasks.charter import Charter
from waggle.tasks.questions import Question, epoch_at
from waggle.tasks.rollout_group import RIGHT, JudgedGroup
from waggle.tasks.sandbox.verifier import Verifier
from waggle_lab.security.sieges.attack_process import ALL_ATTACKS, NO_ATTACK, POISON, AttackOrders, AttackTotals, run_attackers
from waggle_lab.security.sieges.identities import identity_of
from waggle_lab.security.sieges.prices import AttackerPrice, VictimCounts, VictimPrice
from waggle_lab.study.comparison import DEFAULT
from waggle_lab.study.plan import configuration

DIRECTORY_INTERVAL_S = 0.5  # between two reads of the directory; a turn of all eight nodes takes about a second
MEETING_TIMEOUT_S = 30.0  # for the start of the seed and the end of the attackers
# The honest nodes play up to so many times the rounds of the key, until the attack was made as often as the key has rounds and
# groups have arrived: a fast computer plays a whole round between two reads of the directory.
MAX_ROUNDS_FACTOR = 20


class SiegeKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What identifies a siege. `configuration` is the default, or the default without some of its bounds on peers."""

    attack: str
    honest: int
    hostile: int
    rounds: int
    seed: int
    configuration: str = DEFAULT
    split: str = "dev"
    scored: bool = False  # whether the held-out scores of the honest nodes are measured at the end
    simulated: bool = False  # in a simulated swarm


class Costs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The costs of all honest nodes together, with their network and verifier processes."""

    cpu_seconds: float  # per round
    memory_mb: float  # peak
    seconds: float  # of the whole siege


class Siege(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The result of a siege. Counts are over all honest nodes and rounds; None: early sieges did not count it."""

    key: SiegeKey
    commit: str
    code_executions: int  # files created by code in an answer
    crashes: int  # of nodes, of their network processes, of rounds
    verifier_restarts: int
    wrong_answers_accepted: int  # answers judged right that are not the true answer
    honest_groups_lost: int  # dropped although an honest node sent them
    honest_received: int
    hostile_received: int
    hostile_trained_on: int
    refused: dict[str, int]  # reason -> hostile records or groups
    held_out: tuple[float, ...]  # of each honest node at the end; empty if not scored
    trigger_rate: float  # share of local completions with the planted phrase, in the last rounds
    costs: Costs
    attacked: int | None = None  # rounds in which the hostile nodes attacked
    tried: int | None = None  # attacks that each hostile node finished, in a siege by all attacks without the poison
    played: int | None = None  # rounds of the honest nodes; more than the key's if an attack takes longer than a round
    lost_for: dict[str, int] = {}  # reason -> honest records or groups
    target_share: float | None = None  # of all answers of the last rounds: those that are the target (early: in its specialty)
    forbidden: int | None = None  # times that a scorer was ended for a forbidden act on a text
    attackers: AttackerPrice | None = None
    victims: VictimPrice | None = None
    bystander_calls: int | None = None  # at a bystander that the hostile nodes named

    def __post_init__(self) -> None:
        if self.held_out and not self.key.scored:  # an early siege, whose key does not have the field
            msgspec.structs.force_setattr(self, "key", msgspec.structs.replace(self.key, scored=True))


class HonestNodes:
    """The honest side: nodes in one process that play one after the other, as in a simulated swarm, but over the real network."""

    def __init__(self, key: SiegeKey, charter: Charter, questions: Sequence[Question], folder: Path) -> None:
        self.key, self.charter, self.questions = key, charter, questions
        self.verifier_restarts: list[str] = []
        self.verifier = Verifier(charter, restarted=self.verifier_restarts.append)
        self.news: list[NetworkEvent] = []
        self.rules = configuration(key.configuration).rules(stages.RoundSettings().learning_rate)
        self.identities = [identity_of(folder / f"honest-{i}.key", key.seed, i) for i in range(key.honest)]
        self.swarms: list[SwarmNode] = []
        self.nodes: list[stages.Node] = []
        self.counts = VictimCounts(key.rounds)
        self.trained_on = 0
        self.played = 0

    @property
    def origins(self) -> set[bytes]:
        return {identity.peer_id for identity in self.identities}

    @property
    def has_exchanged_groups(self) -> bool:
        """Whether an honest node received groups of another and, if some nodes poison, of a hostile node."""
        from_honest = {news.origin in self.origins for news in list(self.news) if isinstance(news, GroupsArrived)}
        return (True in from_honest or self.key.honest == 1) and (
            False in from_honest or self.key.attack not in (ALL_ATTACKS, POISON)
        )

    async def start(self, seed_address: str) -> list[str]:
        """Join the swarm; returns an address of each node."""
        for i, identity in enumerate(self.identities):
            options = SwarmOptions(host="127.0.0.1", seeds=(seed_address,), tempo=DIRECTORY_INTERVAL_S, rejoin=1.0)
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
        """Play round `number` on every node."""
        self.played = number + 1
        for node in self.nodes:
            for stage in play_round(number, epoch_at(time.time()), node, self.rules):
                if isinstance(stage, stages.Judged):
                    self.counts.record_completions(stage)
                if isinstance(stage, stages.Learned):
                    self.counts.record_lessons(stage, lambda origin: origin not in self.origins)
                    self.trained_on += sum(
                        lesson.group.group.origin not in self.origins and any(lesson.effects) for lesson in stage.lessons
                    )

    def scores(self) -> tuple[float, ...]:
        """The held-out pass@1 of each node; empty without questions."""
        if not self.questions:
            return ()
        scores = [evaluation.measure(self.key.rounds, node, self.rules, self.questions) for node in self.nodes]
        return tuple(score.right / score.total for score in scores)

    def report(
        self, commit: str, scores: tuple[float, ...], crashes: int, canary: Path, costs: Costs, attack_control: "_AttackControl"
    ) -> Siege:
        """The result so far; call it before the nodes are closed."""
        honest = self.origins
        arrived = [news for news in self.news if isinstance(news, GroupsArrived)]
        dropped = [news for news in self.news if isinstance(news, RecordRejected)]
        return Siege(
            key=self.key,
            commit=commit,
            code_executions=int(canary.exists()),
            crashes=crashes + sum(isinstance(news, NetworkRestarted) for news in self.news),
            verifier_restarts=len(self.verifier_restarts),
            wrong_answers_accepted=sum(
                count_wrongly_accepted(news.groups, self.verifier) for news in arrived if news.origin not in honest
            ),
            honest_groups_lost=sum(news.origin in honest for news in dropped),
            honest_received=sum(len(news.groups) for news in arrived if news.origin in honest),
            hostile_received=sum(len(news.groups) for news in arrived if news.origin not in honest),
            hostile_trained_on=self.trained_on,
            refused=dict(Counter(news.reason for news in dropped if news.origin not in honest)),
            held_out=scores,
            trigger_rate=self.counts.share_showing("planted phrase"),
            costs=costs,
            target_share=self.counts.share_showing("chosen answers"),
            attacked=attack_control.done,
            tried=attack_control.tried,
            played=self.played,
            lost_for=dict(Counter(news.reason for news in dropped if news.origin in honest)),
            forbidden=self.verifier.forbidden,
            attackers=attack_control.totals.price if attack_control.totals else None,
            victims=self.counts.price(costs.cpu_seconds * self.played),
            bystander_calls=attack_control.totals.bystander_calls if attack_control.totals else None,
        )

    async def close(self) -> None:
        await asyncio.gather(*(swarm.close() for swarm in self.swarms))
        self.verifier.close()


async def run_siege(
    key: SiegeKey, charter: Charter, questions: Sequence[Question], commit: str, report_progress: Callable[[int], None]
) -> Siege:
    """Run one siege; `report_progress` gets the number of rounds done. Raises only errors of our own code."""
    started, thread = time.monotonic(), ThreadPoolExecutor(1)
    loop = asyncio.get_running_loop()
    with tempfile.TemporaryDirectory() as folder:
        canary = Path(folder) / "canary"
        honest_nodes = HonestNodes(key, charter, questions, Path(folder))
        node_tasks: list[asyncio.Future[None]] = []
        try:
            async with _seed(charter, Path(folder)) as address:
                addresses = await honest_nodes.start(address)
                orders = AttackOrders(
                    attack=key.attack, count=key.hostile, charter=charter, seed_address=address, victims=tuple(addresses),
                    canary=str(canary),
                )  # fmt: skip
                node_tasks += [asyncio.ensure_future(swarm.run()) for swarm in honest_nodes.swarms]
                async with _attackers(orders) as attack_control:
                    cpu_seconds_before, peak_mb = _cpu_seconds(honest_nodes), 0.0
                    for number in range(key.rounds * (1 if key.scored else MAX_ROUNDS_FACTOR)):
                        if number >= key.rounds and attack_control.has_attacked(key.rounds) and honest_nodes.has_exchanged_groups:
                            break
                        attack_control(number)
                        await loop.run_in_executor(thread, honest_nodes.play, number)
                        peak_mb = max(peak_mb, _memory_mb(honest_nodes))
                        if number < key.rounds:
                            report_progress(number + 1)
                    cpu_seconds = _cpu_seconds(honest_nodes) - cpu_seconds_before
                scores = await loop.run_in_executor(thread, honest_nodes.scores)
                crashes = sum(task.done() and not task.cancelled() and task.exception() is not None for task in node_tasks)
            costs = Costs(cpu_seconds=cpu_seconds / honest_nodes.played, memory_mb=peak_mb, seconds=time.monotonic() - started)
            return honest_nodes.report(commit, scores, crashes, canary, costs, attack_control)
        finally:
            for task in node_tasks:
                task.cancel()
            await honest_nodes.close()
            thread.shutdown()


def count_wrongly_accepted(groups: Sequence[JudgedGroup], verifier: Verifier) -> int:
    """How many answers were judged right although they are not the true answer, the only right answer that attackers write."""
    right = [
        (judged.question, completion.text[verdict.start : verdict.start + verdict.length])
        for judged in groups
        for completion, verdict in zip(judged.group.completions, judged.verdicts, strict=True)
        if verdict.reward >= RIGHT
    ]
    truths = verifier.answers([question.key for question, _ in right]) if right else []
    return sum(truth.strip().casefold() != span.strip().casefold() for truth, (_, span) in zip(truths, right, strict=True))


@contextlib.asynccontextmanager
async def _seed(charter: Charter, folder: Path) -> AsyncIterator[str]:
    stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()

    def receive_line(line: str) -> None:
        if line.startswith("/") and not address.done():
            address.set_result(line)

    identity = keys.load_or_create(folder / "seed.key")
    running = asyncio.ensure_future(seed_node.run(SwarmOptions(host="127.0.0.1"), identity, charter, receive_line, stop))
    try:
        yield await asyncio.wait_for(address, MEETING_TIMEOUT_S)
    finally:
        stop.set()
        await running


class _AttackControl:
    """Starts the attacks of the hostile process, and counts the rounds in which it attacked. `totals` are known at its end."""

    def __init__(self, pipe: Pipe | None) -> None:
        self._pipe = pipe
        self._idle = True
        self.done, self.tried = 0, 0
        self.totals: AttackTotals | None = None

    def has_attacked(self, rounds: int) -> bool:
        """Whether the hostile side attacked in so many rounds and finished an attack; True if there is no hostile side."""
        self._listen()
        return self._pipe is None or (self.done >= rounds and self.tried > 0)

    def __call__(self, number: int) -> None:
        """Start the attacks of a round, unless the hostile side is still busy."""
        self._listen()
        if self._pipe is not None and self._idle:
            self._pipe.send(number)
            self._idle = False

    def end(self, seconds: float) -> None:
        """End the hostile side, and wait so long for its totals."""
        assert self._pipe is not None, "only a hostile side ends"
        self._pipe.send(None)
        with contextlib.suppress(EOFError):  # it has ended without them
            while self.totals is None and self._pipe.poll(seconds):
                self._receive()

    def _listen(self) -> None:
        while self._pipe is not None and self._pipe.poll():
            self._receive()

    def _receive(self) -> None:
        assert self._pipe is not None, "something came from there"
        message = self._pipe.recv()
        if isinstance(message, AttackTotals):
            self.totals = message
        else:
            self.tried = message
            self._idle = True
            self.done += 1


@contextlib.asynccontextmanager
async def _attackers(orders: AttackOrders) -> AsyncIterator[_AttackControl]:
    """Run the hostile side in a process of its own, if the orders name an attack."""
    if orders.attack == NO_ATTACK:
        yield _AttackControl(None)
        return
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=run_attackers, args=(theirs, orders), daemon=True)
    process.start()
    theirs.close()
    try:
        await asyncio.to_thread(ours.recv)  # ready
        control = _AttackControl(ours)
        yield control
        await asyncio.to_thread(control.end, MEETING_TIMEOUT_S)
        await asyncio.to_thread(process.join, MEETING_TIMEOUT_S)
    finally:
        process.kill()
        process.join()


def _child_pids(honest_nodes: HonestNodes) -> list[int]:
    return [pid for pid in (honest_nodes.verifier.pid, *(swarm.transport.pid for swarm in honest_nodes.swarms)) if pid]


def _cpu_seconds(honest_nodes: HonestNodes) -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    total = own.ru_utime + own.ru_stime
    for pid in _child_pids(honest_nodes):
        with contextlib.suppress(psutil.Error):  # the process was just replaced
            total += sum(psutil.Process(pid).cpu_times()[:2])
    return total


def _memory_mb(honest_nodes: HonestNodes) -> float:
    return sum(map(resident_bytes, (os.getpid(), *_child_pids(honest_nodes)))) / 2**20
