"""Some DHT nodes in one process, over iroh or p2pd, which obey JSON lines. `nodes.py KIND ADDRESS FIRST_PORT COUNT MEMORY_MIB`

KIND "open" is iroh that may ask the router. MEMORY_MIB is the limit of a network process; 0: the usual one.
"""

import asyncio
import functools
import json
import os
import random
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from waggle.core.errors import SwarmError
from waggle.core.peer_id import text_of
from waggle.network.identity import keys
from waggle.network.messages import directory
from waggle.network.messages.announcement import Announcement, signed
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport.hivemind.daemon import Daemon, start_daemon
from waggle.network.transport.hivemind.network import HivemindNetwork, _start_dht_node
from waggle.network.transport.hivemind.patches import load_hivemind
from waggle.network.transport.interface import PeerAway, Services
from waggle.network.transport.iroh import process
from waggle.network.transport.iroh.dht_calls import DhtCalls
from waggle.network.transport.iroh.process import Answer, NetworkProcess, start_process

CHARTER = b"c" * 32
BITS = 12
GIVE = "give"


@functools.cache
def payload(size: int) -> bytes:
    """The same bytes for everybody, as a node's payload is."""
    return os.urandom(size)


class Node:
    """One DHT node, and a handler that gives as many bytes as asked for."""

    def __init__(self, kind: str, host: str, port: int, memory_bytes: int) -> None:
        self.kind, self.host, self.port, self._memory_bytes = kind, host, port, memory_bytes
        self.identity = keys.load_or_create(Path(tempfile.mkdtemp()) / "own.key")
        self.network: HivemindNetwork
        self.process: NetworkProcess | None = None
        self.restarts: list[float] = []  # seconds without a process, each

    async def open(self) -> None:
        hivemind, services = load_hivemind(), Services(digest=CHARTER)
        if self.kind != "p2pd":
            self.process = await start_process(
                self.identity, [f"{self.host}:{self.port}"], ask_router=self.kind == "open", memory_bytes=self._memory_bytes
            )
            self.process.handlers[GIVE] = self._give
            p2p: Any = DhtCalls(hivemind, self.process)
            daemon = Daemon(hivemind, p2p)
        else:
            daemon = await start_daemon(SwarmOptions(host=self.host), self.identity, services, port=self.port)

            async def give(request: Any, _context: Any) -> Any:
                return hivemind.BytesValue(value=payload(int(request.value)))

            await daemon.p2p.add_protobuf_handler(GIVE, give, hivemind.BytesValue)
        self.network = HivemindNetwork(hivemind, daemon, await _start_dht_node(hivemind, daemon.p2p, services))

    async def stay_open(self) -> None:
        """Start the network process again whenever it ends."""
        while True:
            await self.network.daemon.wait_until_exit()
            since = time.monotonic()
            while True:
                try:
                    await self.open()
                    break
                except (SwarmError, PeerAway):
                    await asyncio.sleep(0.2)
            self.restarts.append(time.monotonic() - since)

    async def _give(self, _peer_id: bytes, _socket: str, request: bytes) -> Answer:
        return Answer(payload(int(request)))

    @property
    def address(self) -> str:
        way = "udp/{}/quic-v1" if self.kind != "p2pd" else "tcp/{}"
        return f"/ip4/{self.host}/{way.format(self.port)}/p2p/{text_of(self.identity.peer_id)}"

    async def call(self, peer_id: bytes, size: int, seconds: float) -> int:
        if self.process is not None:
            return len(await self.process.call(peer_id, GIVE, b"%d" % size, seconds))
        return len(await self.network.daemon.call(GIVE, peer_id, b"%d" % size, seconds))

    async def announce(self, bits: int) -> bool:
        expires = int((time.time() + 250) * 1000)
        offer = Announcement(
            charter=CHARTER, sha256=os.urandom(32), size=9, round=1, epoch=1, specialties=1, model="m", expires=expires
        )
        key = directory.key_of(CHARTER, bits, directory.shard_of(self.identity.peer_id, bits))
        return await self.network.announce(key, self.identity.peer_id, signed(offer, self.identity), offer.expires_at)


async def counts_of(node: Node) -> dict[str, int]:
    try:
        return (await node.process.peers()).counts if node.process is not None else {}
    except PeerAway:
        return {}


class Nodes:
    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes

    async def connect(self, address: str) -> float:
        """Join through an address; seconds until the last node has read the directory."""
        started = time.monotonic()
        for node in self.nodes:
            if address.endswith(text_of(node.identity.peer_id)):
                continue
            for _ in range(20):
                try:
                    await node.network.connect(address)
                    await node.network.find_neighbours()
                    break
                except PeerAway:
                    await asyncio.sleep(0.2)
        return time.monotonic() - started

    async def round(self, count: int, others: list[str]) -> dict[str, Any]:
        """Stores and reads of random shards, one after the other; milliseconds of each. `others`: peer ids (hex) to look for."""
        stores, reads, failed, empty = [], [], 0, 0
        for index in range(count):
            node, started = self.nodes[index % len(self.nodes)], time.perf_counter()
            try:
                failed += not await node.announce(random.randrange(BITS + 1))
            except PeerAway:
                failed += 1
            stores.append(1000 * (time.perf_counter() - started))
        for index in range(count):
            node, started = self.nodes[index % len(self.nodes)], time.perf_counter()
            bits, target = random.randrange(BITS + 1), bytes.fromhex(random.choice(others))
            key = directory.key_of(CHARTER, bits, directory.shard_of(target, bits))
            try:
                empty += target not in await node.network.read_directory(key)
            except PeerAway:
                failed += 1
            reads.append(1000 * (time.perf_counter() - started))
        return {"stores": stores, "reads": reads, "failed": failed, "empty": empty}

    async def announce_all(self) -> int:
        """Every node under each of its keys; how many stores failed."""
        failed = 0
        for node in self.nodes:
            for bits in range(BITS + 1):
                try:
                    failed += not await node.announce(bits)
                except PeerAway:
                    failed += 1
        return failed

    async def see(self) -> list[int]:
        """How many entries each node reads under the key of all; -1: it cannot read."""
        counts = []
        for node in self.nodes:
            try:
                counts.append(len(await node.network.read_directory(directory.key_of(CHARTER, 0, 0))))
            except PeerAway:
                counts.append(-1)
        return counts

    async def calls(self, peer_id: str, size: int, count: int, seconds: float = 10.0) -> list[float]:
        """Milliseconds of each call; -1 for one that failed."""
        times = []
        for _ in range(count):
            started = time.perf_counter()
            try:
                complete = await self.nodes[0].call(bytes.fromhex(peer_id), size, seconds) == size
            except PeerAway:
                complete = False
            times.append(1000 * (time.perf_counter() - started) if complete else -1.0)
        return times

    async def witness(self, peer_id: str, address: str, seconds: float, pause: float = 0.2) -> dict[str, Any]:
        """Call a peer as a node does, connecting again when a call fails. Lost calls, the worst answer, and the longest gap."""
        times, lost, gaps, last, end = [], 0, [0.0], time.monotonic(), time.monotonic() + seconds
        while time.monotonic() < end:
            started = time.perf_counter()
            try:
                await self.nodes[0].call(bytes.fromhex(peer_id), 1000, 3.0)
                times.append(1000 * (time.perf_counter() - started))
                gaps.append(time.monotonic() - last)
                last = time.monotonic()
            except PeerAway:
                lost += 1
                with suppress(PeerAway):
                    await self.nodes[0].network.daemon.connect(address)
            await asyncio.sleep(pause)
        gaps.append(time.monotonic() - last)
        ordered = sorted(times) or [-1.0]
        return {
            "answered": len(times),
            "lost": lost,
            "median_ms": ordered[len(ordered) // 2],
            "worst_ms": ordered[-1],
            "gap_s": max(gaps),
        }

    async def give_up(self, peer_id: str, count: int, together: int, longest_s: float) -> dict[str, int]:
        """Calls that are cancelled at random moments."""
        results = {"complete": 0, "cancelled": 0, "failed": 0}
        numbers = iter(range(count))

        async def some() -> None:
            for _ in numbers:
                try:
                    async with asyncio.timeout(random.random() * longest_s):
                        await self.nodes[0].call(bytes.fromhex(peer_id), 20_000, 10.0)
                    results["complete"] += 1
                except TimeoutError:
                    results["cancelled"] += 1
                except PeerAway:
                    results["failed"] += 1

        await asyncio.gather(*(some() for _ in range(together)))
        return results

    async def together(self, peer_id: str, count: int, size: int) -> int:
        """How many of so many calls at once are answered."""
        calls = (self.nodes[0].call(bytes.fromhex(peer_id), size, 10.0) for _ in range(count))
        return sum(answer == size for answer in await asyncio.gather(*calls, return_exceptions=True))

    async def usage(self) -> dict[str, Any]:
        """CPU seconds and resident MiB of this process and of the network processes."""
        me = psutil.Process()
        times = [each.cpu_times() for each in (me, *me.children(recursive=True))]
        children = [psutil.Process(node.network.daemon.pid) for node in self.nodes if node.network.daemon.memory]
        return {
            "cpu_s": sum(each.user + each.system for each in times),
            "python_mib": me.memory_info().rss / 2**20,
            "network_mib": [each.memory_info().rss / 2**20 for each in children],
            "pids": [each.pid for each in children],
            "threads": [each.num_threads() for each in children],
            "tasks": len(asyncio.all_tasks()),
            "restarts": [node.restarts for node in self.nodes],
            "counts": [await counts_of(node) for node in self.nodes],
        }

    async def ids(self) -> list[tuple[str, str]]:
        return [(node.identity.peer_id.hex(), node.address) for node in self.nodes]


async def main() -> None:
    kind, host, first, count, memory = sys.argv[1:]
    size = int(memory) * 2**20 or process.MEMORY_BYTES
    nodes = [Node(kind, host, int(first) + index, size) for index in range(int(count))]
    started = time.monotonic()
    for node in nodes:
        await node.open()
    all_nodes = Nodes(nodes)
    background = [asyncio.create_task(node.stay_open()) for node in nodes]
    print(json.dumps(time.monotonic() - started), flush=True)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        name, arguments = json.loads(line)
        try:
            result = await getattr(all_nodes, name)(*arguments)
        except Exception as error:  # noqa: BLE001 - the other side prints it
            result = {"error": repr(error)[:300]}
        print(json.dumps(result), flush=True)
    for task in background:
        task.cancel()
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
