"""A witness of an attack: an honest stranger that keeps asking the victim, and the memory of the victim's processes meanwhile."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from waggle.core.system.process_memory import resident_bytes
from waggle.network.identity import keys
from waggle.network.messages.addresses import peer_of
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport.hivemind.network import open_network
from waggle.network.transport.interface import PeerAway, Services

ASK_EVERY_S, MEASURE_EVERY_S = 0.25, 0.1
MIB = 1024 * 1024


class Witness:
    """What it saw. `downtime_s` is the time from the last answer before a lost one to the next answer, summed up.

    `growth_mib` is the most that the victim's processes grew together.
    """

    def __init__(self) -> None:
        self.answers, self.lost = 0, 0
        self.downtime_s, self.slowest_s, self.growth_mib = 0.0, 0.0, 0.0
        self._answered_at, self._is_down = time.monotonic(), False

    def note(self, *, answered: bool, seconds: float) -> None:
        now = time.monotonic()
        self.slowest_s = max(self.slowest_s, seconds)
        if not answered:
            self.lost += 1
            self._is_down = True
            return
        self.answers += 1
        if self._is_down:
            self.downtime_s += now - self._answered_at
        self._answered_at, self._is_down = now, False

    def end(self) -> None:
        if self._is_down:
            self.downtime_s += time.monotonic() - self._answered_at


@asynccontextmanager
async def watched(pids: Sequence[int], address: str, folder: Path) -> AsyncIterator[Witness]:
    """Ask the node at this address for its handshake again and again, and measure its processes, while the block runs."""
    identity, witness = keys.load_or_create(folder / "witness.key"), Witness()
    network = await open_network(SwarmOptions(host="127.0.0.1"), identity, Services(), port=0)

    async def ask() -> None:
        while True:
            began, answered = time.monotonic(), True
            try:
                await network.fetch_handshake(peer_of(address))
            except PeerAway:
                answered = False
            witness.note(answered=answered, seconds=time.monotonic() - began)
            await asyncio.sleep(ASK_EVERY_S)

    async def measure() -> None:
        before = sum(map(resident_bytes, pids))
        while True:
            witness.growth_mib = max(witness.growth_mib, (sum(map(resident_bytes, pids)) - before) / MIB)
            await asyncio.sleep(MEASURE_EVERY_S)

    try:
        await network.connect(address)
        tasks = [asyncio.create_task(ask()), asyncio.create_task(measure())]
        try:
            yield witness
        finally:
            witness.end()
            failed = [task for task in tasks if not task.cancel()]
            await asyncio.gather(*tasks, return_exceptions=True)
            for task in failed:
                task.result()  # raises: a measurement that ended is none
    finally:
        await network.close()
