"""What was measured, as a table for people and as the figures that documents may quote: medians of all rounds of a side."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from waggle.models.shared import model_config
from waggle.practice import json_lines_file
from waggle_lab.benchmark import cells
from waggle_lab.benchmark import limits as bench_limits
from waggle_lab.benchmark.cells import CELLS, EQUAL
from waggle_lab.benchmark.clock import ROUND, SYSTEM
from waggle_lab.benchmark.limits import Limits

PHASES = ("ready", "prefill", "decode", "sample", "old", "update", SYSTEM, "optimiser", ROUND)
RATIOS = {  # figure -> (cell of Waggle, cell of the other, the other)
    "tiny_vs_trl_fp32": ("tiny", "tiny", "trl"),
    "tiny_vs_genrl": ("tiny", "tiny", "genrl"),
    "half_b_vs_trl_fp32": ("half-fp32", "half-fp32", "trl"),
    "half_b_vs_trl_bf16": ("half-bf16", "half-bf16", "trl"),
    "half_b_lora_vs_trl": ("half-lora", "half-lora", "trl"),
    "half_b_vs_genrl_fp32": ("half-fp32", "half-fp32", "genrl"),
    "half_b_vs_genrl_bf16": ("half-bf16", "half-bf16", "genrl"),
    "half_b_bf16_vs_genrl_default": ("half-bf16", "half-fp32", "genrl"),  # it computes in fp32 unless told otherwise
    "half_b_skewed_vs_trl": ("half-skewed", "half-skewed", "trl"),
    "half_b_cuda_vs_trl": ("cuda", "cuda", "trl"),
}
PEAKS = {
    "gib_full_fp32": "memory-full", "gib_full_lean": "memory-lean", "gib_lora": "memory-lora",
    "gib_paper_lean": "paper-lean", "gib_paper_lora": "paper-lora",
}  # fmt: skip
PAUSES = ("half-fp32", "half-bf16", "half-lora", "memory-full", "memory-lean")  # every method and precision
REACHED = {  # figure -> (cell, phase)
    "limit_decode_16": ("half-bf16", "decode"), "limit_decode_16_fp32": ("half-fp32", "decode"),
    "limit_decode_72": ("decode-72", "decode"), "limit_train": ("half-bf16", "update"),
    "limit_train_fp32": ("half-fp32", "update"), "limit_prefill": ("half-bf16", "prefill"),
    "limit_prefill_fp32": ("half-fp32", "prefill"),
}  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One line of the book: one side of one cell in one process."""

    cell: str
    side: str
    commit: str
    rounds: Sequence[dict[str, float]] = ()
    gib: float = 0.0
    moved: float = 0.0
    more: dict[str, float] = field(default_factory=dict)
    limits: Limits | None = None
    versions: dict[str, str] = field(default_factory=dict)
    card: str = ""  # where it computed on one


def read(book: Path) -> list[Run]:
    """All lines so far; raises LabError."""
    return json_lines_file.read(book, Run, "a run of the benchmark", "--out")


def of(runs: Sequence[Run], cell: str, side: str = "waggle") -> list[Run]:
    return [one for one in runs if (one.cell, one.side) == (cell, side)]


def seconds(runs: Sequence[Run], phase: str = ROUND) -> float | None:
    """The median of a phase; None where it was not measured."""
    found = [taken[phase] for one in runs for taken in one.rounds if phase in taken]
    return statistics.median(found) if found else None


def reached(runs: Sequence[Run], cell: str, phase: str) -> float | None:
    """The share of the limit: the seconds that a phase needs at the least, by those it took, each by its own process's limits."""
    wanted = CELLS[cell]
    need = bench_limits.needs(wanted, model_config.read(cells.folder_of(wanted.model))).get(phase)
    found = [
        need.seconds(one.limits) / taken[phase]
        for one in of(runs, cell)
        for taken in one.rounds
        if need and one.limits and phase in taken
    ]
    return statistics.median(found) if found else None


def figures(runs: Sequence[Run]) -> dict[str, object]:
    """Only what was measured, each with its shape."""
    found: dict[str, object] = {}
    for name, (ours, theirs, side) in RATIOS.items():
        mine, other = seconds(of(runs, ours)), seconds(of(runs, theirs, side))
        if mine and other:
            found[name] = round(other / mine, 2)
    for name, cell in PEAKS.items():
        if peaks := of(runs, cell):
            found[name] = round(max(one.gib for one in peaks), 2)
    for name, (cell, phase) in REACHED.items():
        share = reached(runs, cell, phase)
        if share:
            found[name] = round(share, 3)
    if taken := [one[SYSTEM] / one["update"] for run in of(runs, "half-bf16") for one in run.rounds if SYSTEM in one]:
        found["system_share_of_train"] = round(statistics.median(taken), 3)
    if pauses := [one.more["pause_ms"] for name in PAUSES for one in of(runs, name)]:
        found["pause_ms_half_b"] = round(max(pauses))
    for one in of(runs, EQUAL):
        found |= {f"trl_{name}_relative_error": one.more[name] for name in ("loss", "gradient")}
    found["shapes"] = {name: CELLS[name].words for name in CELLS if of(runs, name)}
    found["seconds"] = {name: _phases(runs, name) for name in CELLS if of(runs, name)}
    found["limits"] = {name: limits for name in CELLS if (limits := _limits(of(runs, name)))}
    found["commits"] = sorted({one.commit for one in runs})
    found["cards"] = sorted({one.card for one in runs if one.card})
    packages = sorted({package for one in runs for package in one.versions})
    found["versions"] = {
        name: ", ".join(sorted({one.versions[name] for one in runs if name in one.versions})) for name in packages
    }
    return found


def _limits(runs: Sequence[Run]) -> dict[str, float]:
    """What the processor could do while a cell was measured: cells may have been measured on several."""
    known = [one.limits for one in runs if one.limits]
    if not known:
        return {}
    speed, bandwidth = (statistics.median(getattr(one, name) for one in known) for name in ("speed", "bandwidth"))
    return {"gflop_per_s": round(speed / 1e9, 1), "gb_per_s": round(bandwidth / 1e9, 1)}


def _phases(runs: Sequence[Run], cell: str) -> dict[str, dict[str, float]]:
    """Of every side the median seconds of every phase, its peak memory, the least that weights moved, and how many rounds."""
    found: dict[str, dict[str, float]] = {}
    for side in CELLS[cell].sides:
        if played := of(runs, cell, side):
            taken = {phase: seconds(played, phase) for phase in PHASES}
            found[side] = {phase: round(value, 3) for phase, value in taken.items() if value is not None}
            found[side] |= {
                "gib": round(max(one.gib for one in played), 2),
                "moved": min(one.moved for one in played),
                "rounds": sum(len(one.rounds) for one in played),
            }
    return found


def table(runs: Sequence[Run]) -> str:
    """One block a cell: its shape, and a line a side."""
    return "\n".join(line for name in CELLS if of(runs, name) for line in _block(runs, name))


def _block(runs: Sequence[Run], cell: str) -> Iterator[str]:
    yield f"\n{cell}: {CELLS[cell].words}"
    yield "".join([f"{'':10}", *(f"{phase:>11}" for phase in (*PHASES, "GiB", "rounds"))])
    for side, found in _phases(runs, cell).items():
        columns = [*(found.get(phase) for phase in PHASES), found["gib"], found["rounds"]]
        yield "".join([f"{side:10}", *(f"{'-' if value is None else f'{value:.4g}':>11}" for value in columns)])
    shares = [reached(runs, cell, phase) for phase in PHASES]
    yield "".join([f"{'of limit':10}", *(f"{'' if share is None else f'{share:.0%}':>11}" for share in shares)])
    mine = seconds(of(runs, cell))
    for side in CELLS[cell].sides[1:]:
        other = seconds(of(runs, cell, side))
        if mine and other:
            yield f"waggle is {other / mine:.2f} times as fast as {side}"
