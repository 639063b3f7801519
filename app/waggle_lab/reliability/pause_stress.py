"""The part of torture without kills: how soon a pause takes effect in each stage of a round, and whether memory grows."""

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
from waggle_lab.reliability.target_process import TargetProcess

PACE_S = 180.0  # how long the rounds of default settings are counted
MEMORY_SAMPLE_S = 2.0  # between two samples of memory
# Rounds with every stage but hardly any work: an hour has as many of them as many hours of default rounds.
SHORT_ROUNDS = (
    "learning.questions=1", "learning.local=1", "learning.external=1", "learning.group_size=4", "learning.max_new_tokens=8",
    "learning.held_out_questions=1",
)  # fmt: skip


class MeasuredPause(msgspec.Struct, frozen=True, kw_only=True):
    """A pause in a stage of a round, and the milliseconds until it took effect."""

    stage: str
    ms: float


class Soak(msgspec.Struct, frozen=True, kw_only=True):
    """A soak: the rounds played, the hours that as many default rounds take, and the growth of memory by process."""

    rounds: int
    hours: float
    growth_percent: dict[str, float | None]  # None: too few samples


class CalmResults(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `calm.json`: everything measured without kills."""

    pauses: list[MeasuredPause] = []
    soak: Soak | None = None


def read_results(out: Path) -> CalmResults:
    """The results in a folder so far; raises LabError."""
    path = out / "calm.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=CalmResults) if path.exists() else CalmResults()
    except (OSError, *UNREADABLE) as error:
        raise LabError(f"{path} is not a result of torture: {error}.", "Choose another --out.") from error


def write_results(out: Path, results: CalmResults) -> None:
    paths.write_atomically(out / "calm.json", msgspec.json.encode(results))


def measure_pauses(node: TargetProcess, first: int, last: int) -> list[MeasuredPause]:
    """Measure the pauses number `first` to `last` - 1, each as soon as a stage begins, one stage after the other."""
    pauses = []
    for number in range(first, last):
        stage = STAGES[number % len(STAGES)]
        node.wait_for_stage(stage)
        pauses.append(MeasuredPause(stage=stage, ms=node.measure_pause()))
    return pauses


def soak(out: Path, swarm: Sequence[str], hours: float) -> Soak:
    """Play as many short rounds as two sharing nodes play by default in `hours`, and sample the memory of all processes.

    `swarm` are the settings by which the two find each other.
    """
    with _running_nodes(out, swarm) as (node, _):
        first_default_round, began = _latest_round(node), time.monotonic()
        time.sleep(PACE_S)
        pace = (_latest_round(node) - first_default_round) / (time.monotonic() - began)
    with _running_nodes(out, (*swarm, *SHORT_ROUNDS)) as nodes:
        first_round_of_soak = _latest_round(nodes[0])
        rss_by_process: dict[str, list[int]] = {}
        while _latest_round(nodes[0]) - first_round_of_soak < 3600 * hours * pace:
            for name, process in _processes(*nodes):
                rss_by_process.setdefault(name, []).append(process.memory_info().rss)
            time.sleep(MEMORY_SAMPLE_S)
        rounds = _latest_round(nodes[0]) - first_round_of_soak
    return Soak(
        rounds=rounds,
        hours=rounds / pace / 3600,
        growth_percent={name: growth(values) for name, values in rss_by_process.items()},
    )


@contextmanager
def _running_nodes(out: Path, settings: Sequence[str]) -> Iterator[tuple[TargetProcess, TargetProcess]]:
    """Run two nodes, an engine without a window and one with a window, and stop them at the end."""
    nodes = tuple(TargetProcess(out / name, tuple(settings), windowed=name == "window") for name in ("engine", "window"))
    try:
        for node in nodes:
            node.start()
        for node in nodes:
            node.wait_until_ready()
        yield nodes[0], nodes[1]
    finally:
        for node in nodes:
            node.stop()


def _latest_round(node: TargetProcess) -> int:
    return node.state.rounds[-1].round if node.state.rounds else node.state.ready.round if node.state.ready else 0


def _processes(engine_only: TargetProcess, windowed: TargetProcess) -> Iterator[tuple[str, psutil.Process]]:
    """All processes that are alive, with their names."""
    if windowed.process is not None:
        yield "window", psutil.Process(windowed.process.pid)
    for owner, node in (("", engine_only), ("window's ", windowed)):
        for name in ("engine", "p2pd", "verifier"):
            process = node.engine if name == "engine" else node.child(name)
            if process is not None:
                yield owner + name, process


def growth(values: list[int]) -> float | None:
    """By how many percent the median of the last quarter exceeds that of the second one; the first quarter is warm-up.

    None for fewer than twenty values, which say nothing.
    """
    if len(values) < 20:
        return None
    quarter = len(values) // 4
    return 100 * (statistics.median(values[-quarter:]) / statistics.median(values[quarter : 2 * quarter]) - 1)


def median_and_worst(pauses: Sequence[MeasuredPause]) -> tuple[int | None, int | None]:
    """In milliseconds, rounded; None without pauses."""
    if not pauses:
        return None, None
    return round(statistics.median(pause.ms for pause in pauses)), round(max(pause.ms for pause in pauses))


def summary(results: CalmResults) -> dict[str, object]:
    """The figures of everything that was measured."""
    figures: dict[str, object] = {}
    if results.pauses:
        median, worst = median_and_worst(results.pauses)
        by_stage = {stage: median_and_worst([pause for pause in results.pauses if pause.stage == stage]) for stage in STAGES}
        figures |= {
            "pauses": len(results.pauses),
            "pause_ms_median": median,
            "pause_ms_worst": worst,
            "pause_ms_by_stage": by_stage,
        }
    if results.soak is not None:
        growth_percent = {name: value and round(value, 1) for name, value in results.soak.growth_percent.items()}
        figures |= {
            "soak_rounds": results.soak.rounds,
            "soak_hours_worth": round(results.soak.hours, 1),
            "memory_growth_percent": growth_percent,
        }
    return figures
