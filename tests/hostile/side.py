"""One side of a partition: real nodes in one process, which share on command and report their news.

`partition.py` runs it in a network namespace: JSON lines on stdin and stdout; it exits at the end of stdin.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from network.loopback import answered, fresh_identity, question_ids
from waggle.network.identity.keys import Identity
from waggle.network.messages.events import GroupsArrived, NetworkEvent, NetworkRestarted, ReachChanged, RecordRejected
from waggle.network.messages.options import SwarmOptions
from waggle.network.node import SwarmNode
from waggle.network.open_node import open_node
from waggle.network.transport import peer_cache
from waggle.tasks.charter import Charter
from waggle.tasks.questions import QuestionId
from waggle.tasks.rollout_group import JudgedGroup
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm

ROUNDS = 8  # at most
GROUPS = 2  # that a node shares in each round


@dataclass
class Member:
    """A node of this side, its file of known peers, and the questions it will share."""

    node: SwarmNode
    identity: Identity
    known: Path
    questions: list[QuestionId]


def main() -> None:
    """Start the nodes, report their identities, and follow commands until stdin ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--seed", default="", help="address of a node to meet the others through; else the first one here is it")
    asyncio.run(live(parser.parse_args()))


async def live(arguments: argparse.Namespace) -> None:
    charter = first_swarm()
    verifier = Verifier(charter)
    members: list[Member] = []
    seed = arguments.seed
    try:
        for number in range(arguments.nodes):
            options = SwarmOptions(
                host=arguments.host, seeds=(seed,) if seed else (), known_peers=arguments.folder / f"known{number}.json"
            )
            members.append(await begin(number, options, arguments.folder, charter, verifier))
            seed = seed or await address_of(members[0])
        say("ready", peers=[each.identity.peer_id.hex() for each in members], seed=seed)
        await obey(members, charter, verifier)
    finally:
        await asyncio.gather(*(each.node.close() for each in members))
        verifier.close()


async def begin(number: int, options: SwarmOptions, folder: Path, charter: Charter, verifier: Verifier) -> Member:
    identity = fresh_identity(folder, f"node{number}")
    node = open_node(options, charter, identity, verifier, partial(tell, number))
    assert options.known_peers is not None
    questions = question_ids(charter, verifier, identity.peer_id, ROUNDS * GROUPS)
    await node.start()
    return Member(node, identity, options.known_peers, questions)


async def address_of(member: Member) -> str:
    return (await member.node.transport.network.addresses())[0]


async def obey(members: Sequence[Member], charter: Charter, verifier: Verifier) -> None:
    """`{"share": round}`: share groups of this round on every node. `{"report": name}`: report the state of every node."""
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        match json.loads(line):
            case {"share": number}:
                for member in members:
                    ids = member.questions[number * GROUPS : (number + 1) * GROUPS]
                    groups = await asyncio.to_thread(answered, charter, verifier, member.identity.peer_id, ids)
                    member.node.share(number, groups[0].id.epoch, groups, "starter")
            case {"report": name}:
                say("report", name=name, nodes=[report(member) for member in members])


def report(member: Member) -> dict[str, object]:
    """What a node must not lose in a partition."""
    return {
        "p2pd": member.node.transport.pid,
        "waiting": sorted(name_of(group) for group in member.node.waiting()),
        "received": {peer.id.hex(): peer.received for peer in member.node._reputations._peers.values()},
        "known": sorted(address.rpartition("/")[2] for address in peer_cache.read(member.known)),
    }


def tell(number: int, news: NetworkEvent) -> None:
    match news:
        case GroupsArrived():
            groups = [name_of(group) for group in news.groups]
            say("arrived", node=number, origin=news.origin.hex(), round=news.round, groups=groups)
        case ReachChanged():
            say("reached", node=number, reach=news.reach, peers=news.peers)
        case RecordRejected() | NetworkRestarted():
            say("trouble", node=number, reason=news.reason)
        case _:
            pass  # standings are part of the report; traffic and clocks do not matter here


def name_of(group: JudgedGroup) -> str:
    return f"{group.group.origin.hex()}/{group.group.id.number}"


def say(what: str, **fields: object) -> None:
    sys.stdout.write(json.dumps({"said": what, **fields}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
