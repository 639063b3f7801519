"""Fixtures for live swarms and hostile peers, which are always closed."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from network.conftest import charter, identity, seed_address, start, unhurried
from network.loopback import Live, Start, answered, fresh_identity, options, question_ids, share
from waggle.core import paths
from waggle.models.tokenizer import load as load_tokenizer
from waggle.models.torch.policy import TorchPolicy
from waggle.network.messages.events import GroupsArrived
from waggle.sapo import round as sapo
from waggle.sapo import stages
from waggle.tasks.charter import Charter
from waggle.tasks.questions import epoch_at
from waggle.tasks.sandbox.verifier import Verifier
from waggle_lab.security.attacker import Attacker
from waggle_lab.security.attacks import Scene

__all__ = ["charter", "identity", "seed_address", "start", "unhurried"]

StartAttacker = Callable[[str], Awaitable[Attacker]]


async def honest_one(start: Start, seed_address: str, charter: Charter, verifier: Verifier, listener: Live) -> Live:
    """Let another honest node share a group, and wait until the listener has it."""
    honest = await start("honest", seeds=(seed_address,))
    ids = question_ids(charter, verifier, honest.identity.peer_id, 1)
    share(honest.node, answered(charter, verifier, honest.identity.peer_id, ids))
    await listener.ear.hear(GroupsArrived, lambda news: news.origin == honest.identity.peer_id)
    return honest


def round_of(live: Live, charter: Charter, verifier: Verifier, rules: stages.RoundSettings) -> stages.Learned:
    """Play a round with a fresh starter model and the groups that wait in this node; returns what it learned."""
    node = stages.Node(
        policy=TorchPolicy(paths.starter()), tokenizer=load_tokenizer(paths.starter()), swarm=live.node, verifier=verifier,
        charter=charter, origin=live.identity.peer_id, seed=1, model="Starter",
    )  # fmt: skip
    *_, last = sapo.play(0, epoch_at(time.time()), node, rules.under(charter))
    assert isinstance(last, stages.Learned)
    return last


@pytest.fixture
async def attacker(tmp_path: Path, charter: Charter, seed_address: str) -> AsyncIterator[StartAttacker]:
    """Start a hostile peer in the seed's swarm: `await attacker("name")`."""
    attackers: list[Attacker] = []

    async def start_one(name: str) -> Attacker:
        newcomer = Attacker(fresh_identity(tmp_path, name.replace("'", "")), charter)
        attackers.append(newcomer)
        await newcomer.start(options(seeds=(seed_address,)))
        return newcomer

    yield start_one
    await asyncio.gather(*(each.close() for each in attackers))


@pytest.fixture
def scene_of(charter: Charter, verifier: Verifier, tmp_path: Path) -> Callable[[Attacker], Scene]:
    """The current scene of an attacker."""
    return lambda attacker: Scene(
        charter=charter, verifier=verifier, identity=attacker.identity, now=time.time(), canary=str(tmp_path / "canary")
    )
