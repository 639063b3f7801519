"""Helpers of the live tests: groups with known rewards, nodes on loopback, and waits for news with a deadline."""

import asyncio
import secrets
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any, TypeVar

from waggle.network import seed
from waggle.network.exchange.node_context import NodeContext
from waggle.network.identity import keys as identities
from waggle.network.identity.keys import Identity
from waggle.network.identity.membership import Membership
from waggle.network.limits.reputation import KNOWN_FROM, TRUSTED_FROM, ReputationTable
from waggle.network.messages.events import NetworkEvent, PeerChanged
from waggle.network.messages.options import SwarmOptions
from waggle.network.node import SwarmNode
from waggle.network.transport.interface import Callbacks, Services
from waggle.tasks.charter import Charter
from waggle.tasks.questions import Question, QuestionId, epoch_at, split_of
from waggle.tasks.rollout_group import Completion, Group, JudgedGroup, Verdict
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm

SOON = 60.0  # seconds after which a test fails: an unanswered question to a peer is repeated after 15
DATASET = "basic_arithmetic"
EPOCH = 1000  # of invented groups

Kind = TypeVar("Kind")


class Ear:
    """Collects the news of a node and wakes those who wait for them."""

    def __init__(self) -> None:
        self.news: list[NetworkEvent] = []
        self._changed = asyncio.Event()

    def __call__(self, news: NetworkEvent) -> None:
        self.news.append(news)
        self._changed.set()

    def all(self, kind: type[Kind]) -> list[Kind]:
        return [news for news in self.news if isinstance(news, kind)]

    async def hear(self, kind: type[Kind], such: Callable[[Kind], bool] = lambda news: True, after: int = 0) -> Kind:
        """Wait for the first such news from position `after` on, up to a deadline."""
        async with asyncio.timeout(SOON):
            while True:
                for news in self.news[after:]:
                    if isinstance(news, kind) and such(news):
                        return news
                self._changed.clear()
                await self._changed.wait()

    async def peer(self, peer_id: bytes, such: Callable[[PeerChanged], bool]) -> PeerChanged:
        return await self.hear(PeerChanged, lambda news: news.peer.id == peer_id and such(news))


@dataclass
class Live:
    """A running node, its identity and its news."""

    node: SwarmNode
    identity: Identity
    ear: Ear


Start = Callable[..., Awaitable[Live]]


def options(**changes: object) -> SwarmOptions:
    return SwarmOptions(**{"host": "127.0.0.1", "tempo": 0.1, "rejoin": 0.3, "patience": 12.0, **changes})


def callbacks(
    identity: Identity, report: Callable[[NetworkEvent], None] = lambda news: None, charter: Charter | None = None, **others: Any
) -> Callbacks:
    """A node's callbacks, which answer nothing unless a test names `services`."""
    charter = charter or first_swarm()
    ways = {"services": Services(digest=charter.digest), "membership": Membership(charter, identity.peer_id)}
    return Callbacks(report=report, **{**ways, **others})


def fresh_identity(folder: Path, name: str) -> Identity:
    return identities.load_or_create(folder / f"{name}.key")


def node_context(identity: Identity, charter: Charter, verifier: Verifier, **changes: object) -> NodeContext:
    """The context of a node of which a test uses a part."""
    fields = {"options": options(), "report": lambda event: None, **changes}
    membership = Membership(charter, identity.peer_id)
    return NodeContext(charter=charter, identity=identity, membership=membership, verifier=verifier, **fields)


def question_ids(
    charter: Charter, verifier: Verifier, origin: bytes, count: int, *, reserved: bool = False, epoch: int | None = None
) -> list[QuestionId]:
    """The first `count` questions of this origin for training, or the reserved ones (one in ten)."""
    epoch = epoch_at(time.time()) if epoch is None else epoch
    ids = [QuestionId(DATASET, epoch, index) for index in range(60 * count + 240)]
    record = verifier.questions([each.key(charter.digest, origin) for each in ids])
    result = [i for i, q in zip(ids, record, strict=True) if (split_of(q.dataset, q.text) != "train") == reserved]
    return result[:count]


def answered(charter: Charter, verifier: Verifier, origin: bytes, ids: Iterable[QuestionId]) -> list[Group]:
    """Groups of three completions, right, wrong and cut off, with rewards 1, at most a crumb, and 0."""
    groups = []
    for each in ids:
        (truth,) = verifier.answers([each.key(charter.digest, origin)])
        completions = (
            Completion(text=f"I think <answer>{truth}</answer>", ended=True),
            Completion(text="<answer>no idea</answer>", ended=True),
            Completion(text="well, let me", ended=False),
        )
        groups.append(Group(origin=origin, id=each, completions=completions))
    return groups


def judged(origin: int, index: int, *, useful: bool = True, epoch: int = EPOCH) -> JudgedGroup:
    """An invented group, with rewards that teach something or nothing."""
    completions = tuple(Completion(text=text, ended=True) for text in "ab")
    rewards = (1.0, 0.0) if useful else (0.05, 0.0)
    return JudgedGroup(
        group=Group(origin=bytes([origin]) * 38, id=QuestionId("bf", epoch, index), completions=completions),
        question=Question(dataset="bf", seed=index, text="?"),
        verdicts=tuple(Verdict(reward=reward, reason="") for reward in rewards),
    )


def be_of_use(trust: ReputationTable, peer: bytes) -> None:
    """Record the least that makes a peer trusted."""
    for number in range(KNOWN_FROM):
        trust.record_groups(peer, number, "m", [judged(1, index) for index in range(ceil(TRUSTED_FROM / KNOWN_FROM))])


def share(node: SwarmNode, groups: list[Group], *, round_number: int = 1) -> tuple[int, int]:
    return node.share(round_number, groups[0].id.epoch, groups, "starter")


@asynccontextmanager
async def serving(identity: Identity, charter: Charter, **changes: object) -> AsyncIterator[str]:
    """Run a seed; yields its address."""
    stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()

    def say(line: str) -> None:
        if line.startswith("/") and not address.done():
            address.set_result(line)

    running = asyncio.create_task(seed.run(options(**changes), identity, charter, say, stop))
    try:
        yield await asyncio.wait_for(address, SOON)
    finally:
        stop.set()
        await running


def free_port(host: str = "127.0.0.1") -> int:
    """A port below the system's ephemeral range, so that it stays free until the test uses it."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with suppress(OSError), socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.bind((host, port))
            return port
