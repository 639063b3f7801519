"""Obeys commands about swarms: the running engine does, or where none runs, this process with the files of the home."""

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from waggle.cli.shared.engine import ask, engine_runs
from waggle.core import paths, settings
from waggle.core.errors import CharterError
from waggle.core.settings import Value
from waggle.engine.control import server
from waggle.engine.services.swarms.swarm_recovery import recover
from waggle.engine.services.swarms.swarms import CurrentSwarm, SwarmService, with_chosen_swarm
from waggle.engine.storage.stored_swarm import known_charter
from waggle.protocol import commands
from waggle.protocol.state import AnyEvent
from waggle.tasks.shipped_swarms import first_swarm

SECONDS = 300.0  # the judging process starts and unpacks files; an invite's computers are asked
Obey = Callable[[commands.SwarmCommand], Sequence[AnyEvent]]


@contextmanager
def swarm_commands(home: paths.Home) -> Iterator[Obey]:
    """How to have commands about swarms obeyed. Raises EngineError and SwarmError, also while they are obeyed."""
    if engine_runs(home):
        yield lambda command: ask(home, command, SECONDS)
        return
    lock = server.claim_home(home.prepare())
    try:
        if (warned := recover(home)) is not None:
            sys.stderr.write(f"{warned.title} {warned.advice}".strip() + "\n")
        chosen = with_chosen_swarm(home, settings.read(home.settings))
        current = _chosen_swarm(home, chosen.swarm.charter)
        service = SwarmService(
            home, chosen, restart=lambda reason, back: None, change=lambda values: _change(home, values),
            light=lambda: chosen.swarm.light, current=lambda: current,
        )  # fmt: skip
        with asyncio.Runner() as runner:
            yield lambda command: runner.run(service.obey(command))
    finally:
        lock.release()


def _chosen_swarm(home: paths.Home, charter: str) -> CurrentSwarm | None:
    """The swarm of the next engine; without an engine, this computer has no address there."""
    with suppress(CharterError):  # its charter is a file of the settings, or not here yet
        return CurrentSwarm(known_charter(home, charter or first_swarm().digest.hex()), _no_addresses)
    return None


async def _no_addresses() -> list[str]:
    return []


def _change(home: paths.Home, values: Mapping[str, Value]) -> Callable[[], object]:
    before = settings.stored_values(home.settings, values)
    settings.change(home.settings, values)
    return lambda: settings.change(home.settings, before)
