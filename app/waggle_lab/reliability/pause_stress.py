"""The calm part of torture: how soon a pause holds in every stage of a round, and whether hours' worth of rounds cost memory."""

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import psutil

from waggle.core import paths
from waggle.core.errors import UNREADABLE, LabError
from waggle.protocol.state import STAGES
from waggle_lab.reliability.target_process import Victim

PACE_S = 180.0  # in which it is counted how many rounds an hour has
LOOK_S = 2.0  # between two looks at memory
# Everything that a round does, as often as ever, with next to nothing in it: so many hours go by in one.
BRISK = (
    "learning.questions=1", "learning.local=1", "learning.external=1", "learning.group_size=4", "learning.max_new_tokens=8",
    "learning.held_out_questions=1",
)  # fmt: skip


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """A pause asked for in a stage of a round, and the milliseconds until it held."""

    stage: str
    ms: float


class Soak(msgspec.Struct, frozen=True, kw_only=True):
    """Rounds that were played, how many hours they take as a computer plays by default, and memory by process."""

    rounds: int
    hours: float
    growth_percent: dict[str, float | None]  # None: it was seen too seldom to say


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """`calm.json`."""

    pauses: list[Pause] = []
    soak: Soak | None = None


def read(out: Path) -> Found:
    """What was found in a folder so far; raises LabError."""
    path = out / "calm.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=Found) if path.exists() else Found()
    except (OSError, *UNREADABLE) as error:
        raise LabError(f"{path} is not what torture found: {error}.", "Choose another --out.") from error


def write(out: Path, found: Found) -> None:
    paths.write_atomically(out / "calm.json", msgspec.json.encode(found))


def pauses(node: Victim, first: int, last: int) -> list[Pause]:
    """Pauses of these numbers, asked for as soon as a stage begins, each stage in its turn."""
    found = []
    for number in range(first, last):
        stage = STAGES[number % len(STAGES)]
        node.wait_stage(stage)
        found.append(Pause(stage=stage, ms=node.ask_pause()))
    return found


def soak(out: Path, swarm: Sequence[str], hours: float) -> Soak:
    """As many rounds as two nodes that share play in `hours` by default, played briskly; `swarm`: how they find each other."""
    with _living(out, swarm) as (node, _):
        begun, began = _round(node), time.monotonic()
        time.sleep(PACE_S)
        pace = (_round(node) - begun) / (time.monotonic() - began)
    with _living(out, (*swarm, *BRISK)) as nodes:
        first = _round(nodes[0])
        seen: dict[str, list[int]] = {}
        while _round(nodes[0]) - first < 3600 * hours * pace:
            for name, process in _processes(*nodes):
                seen.setdefault(name, []).append(process.memory_info().rss)
            time.sleep(LOOK_S)
        rounds = _round(nodes[0]) - first
    return Soak(rounds=rounds, hours=rounds / pace / 3600, growth_percent={name: growth(values) for name, values in seen.items()})


@contextmanager
def _living(out: Path, settings: Sequence[str]) -> Iterator[tuple[Victim, Victim]]:
    """An engine that we speak with and one in a window, until they are no longer needed."""
    nodes = tuple(Victim(out / name, tuple(settings), windowed=name == "window") for name in ("engine", "window"))
    try:
        for node in nodes:
            node.start()
        for node in nodes:
            node.wait_ready()
        yield nodes[0], nodes[1]
    finally:
        for node in nodes:
            node.stop()


def _round(node: Victim) -> int:
    return node.state.rounds[-1].round if node.state.rounds else node.state.ready.round if node.state.ready else 0


def _processes(alone: Victim, windowed: Victim) -> Iterator[tuple[str, psutil.Process]]:
    """All that live now."""
    if windowed.process is not None:
        yield "window", psutil.Process(windowed.process.pid)
    for owner, node in (("", alone), ("window's ", windowed)):
        for name in ("engine", "p2pd", "verifier"):
            process = node.engine if name == "engine" else node.child(name)
            if process is not None:
                yield owner + name, process


def growth(values: list[int]) -> float | None:
    """The last quarter over the second one, in percent; the first is warm-up. Fewer than twenty values say nothing: None."""
    if len(values) < 20:
        return None
    quarter = len(values) // 4
    return 100 * (statistics.median(values[-quarter:]) / statistics.median(values[quarter : 2 * quarter]) - 1)


def middle_and_worst(found: Sequence[Pause]) -> tuple[int | None, int | None]:
    """Milliseconds."""
    if not found:
        return None, None
    return round(statistics.median(one.ms for one in found)), round(max(one.ms for one in found))


def summary(found: Found) -> dict[str, object]:
    """The figures of what was measured."""
    figures: dict[str, object] = {}
    if found.pauses:
        middle, worst = middle_and_worst(found.pauses)
        by_stage = {stage: middle_and_worst([one for one in found.pauses if one.stage == stage]) for stage in STAGES}
        figures |= {
            "pauses": len(found.pauses),
            "pause_ms_median": middle,
            "pause_ms_worst": worst,
            "pause_ms_by_stage": by_stage,
        }
    if found.soak is not None:
        grown = {name: value and round(value, 1) for name, value in found.soak.growth_percent.items()}
        figures |= {
            "soak_rounds": found.soak.rounds,
            "soak_hours_worth": round(found.soak.hours, 1),
            "memory_growth_percent": grown,
        }
    return figures
