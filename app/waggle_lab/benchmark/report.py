"""The results of the benchmark as a table and as figures that documents may quote: medians over all rounds of a side."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from waggle.models.shared.configuration import model_config
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
    "half_b_bf16_vs_genrl_default": ("half-bf16", "half-fp32", "genrl"),  # it computes in fp32 by default
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
class Measurement:
    """One line of runs.jsonl: one side of one cell in one process."""

    cell: str
    side: str
    commit: str
    rounds: Sequence[dict[str, float]] = ()
    gib: float = 0.0
    moved: float = 0.0
    more: dict[str, float] = field(default_factory=dict)
    limits: Limits | None = None
    versions: dict[str, str] = field(default_factory=dict)
    card: str = ""  # the name of the GPU, if one was used


def read(book: Path) -> list[Measurement]:
    """All runs so far; raises LabError."""
    return json_lines_file.read(book, Measurement, "a run of the benchmark", "--out")


def runs_of(runs: Sequence[Measurement], cell: str, side: str = "waggle") -> list[Measurement]:
    return [run for run in runs if (run.cell, run.side) == (cell, side)]


def seconds(runs: Sequence[Measurement], phase: str = ROUND) -> float | None:
    """The median seconds of a phase; None if it was not measured."""
    values = [phases[phase] for run in runs for phases in run.rounds if phase in phases]
    return statistics.median(values) if values else None


def share_of_limit(runs: Sequence[Measurement], cell: str, phase: str) -> float | None:
    """The median share of the limit: the least seconds that a phase needs (by its own process's limits) over those it took."""
    measured_cell = CELLS[cell]
    need = bench_limits.needs(measured_cell, model_config.read(cells.folder_of(measured_cell.model))).get(phase)
    shares = [
        need.seconds(run.limits) / phases[phase]
        for run in runs_of(runs, cell)
        for phases in run.rounds
        if need and run.limits and phase in phases
    ]
    return statistics.median(shares) if shares else None


def figures(runs: Sequence[Measurement]) -> dict[str, object]:
    """The figures of everything that was measured, with the shapes of the cells."""
    values: dict[str, object] = {}
    for name, (ours, theirs, side) in RATIOS.items():
        mine, other = seconds(runs_of(runs, ours)), seconds(runs_of(runs, theirs, side))
        if mine and other:
            values[name] = round(other / mine, 2)
    for name, cell in PEAKS.items():
        if peaks := runs_of(runs, cell):
            values[name] = round(max(run.gib for run in peaks), 2)
    for name, (cell, phase) in REACHED.items():
        share = share_of_limit(runs, cell, phase)
        if share:
            values[name] = round(share, 3)
    if system_shares := [
        phases[SYSTEM] / phases["update"] for run in runs_of(runs, "half-bf16") for phases in run.rounds if SYSTEM in phases
    ]:
        values["system_share_of_train"] = round(statistics.median(system_shares), 3)
    if pauses := [run.more["pause_ms"] for name in PAUSES for run in runs_of(runs, name)]:
        values["pause_ms_half_b"] = round(max(pauses))
    for run in runs_of(runs, EQUAL):
        values |= {f"trl_{name}_relative_error": run.more[name] for name in ("loss", "gradient")}
    values["shapes"] = {name: CELLS[name].description for name in CELLS if runs_of(runs, name)}
    values["seconds"] = {name: _phases(runs, name) for name in CELLS if runs_of(runs, name)}
    values["limits"] = {name: limits for name in CELLS if (limits := _limits(runs_of(runs, name)))}
    values["commits"] = sorted({run.commit for run in runs})
    values["cards"] = sorted({run.card for run in runs if run.card})
    packages = sorted({package for run in runs for package in run.versions})
    values["versions"] = {
        name: ", ".join(sorted({run.versions[name] for run in runs if name in run.versions})) for name in packages
    }
    return values


def _limits(runs: Sequence[Measurement]) -> dict[str, float]:
    """The limits of the processor while a cell was measured; cells may come from different processors."""
    known = [run.limits for run in runs if run.limits]
    if not known:
        return {}
    speed, bandwidth = (statistics.median(getattr(run, name) for run in known) for name in ("speed", "bandwidth"))
    return {"gflop_per_s": round(speed / 1e9, 1), "gb_per_s": round(bandwidth / 1e9, 1)}


def _phases(runs: Sequence[Measurement], cell: str) -> dict[str, dict[str, float]]:
    """For every side: median seconds of each phase, peak memory (GiB), least movement of weights, number of rounds."""
    by_side: dict[str, dict[str, float]] = {}
    for side in CELLS[cell].sides:
        if played := runs_of(runs, cell, side):
            medians = {phase: seconds(played, phase) for phase in PHASES}
            by_side[side] = {phase: round(value, 3) for phase, value in medians.items() if value is not None}
            by_side[side] |= {
                "gib": round(max(run.gib for run in played), 2),
                "moved": min(run.moved for run in played),
                "rounds": sum(len(run.rounds) for run in played),
            }
    return by_side


def table(runs: Sequence[Measurement]) -> str:
    """A block for each cell: its shape, and a line for each side."""
    return "\n".join(line for name in CELLS if runs_of(runs, name) for line in _block(runs, name))


def _block(runs: Sequence[Measurement], cell: str) -> Iterator[str]:
    yield f"\n{cell}: {CELLS[cell].description}"
    yield "".join([f"{'':10}", *(f"{phase:>11}" for phase in (*PHASES, "GiB", "rounds"))])
    for side, values in _phases(runs, cell).items():
        columns = [*(values.get(phase) for phase in PHASES), values["gib"], values["rounds"]]
        yield "".join([f"{side:10}", *(f"{'-' if value is None else f'{value:.4g}':>11}" for value in columns)])
    shares = [share_of_limit(runs, cell, phase) for phase in PHASES]
    yield "".join([f"{'of limit':10}", *(f"{'' if share is None else f'{share:.0%}':>11}" for share in shares)])
    mine = seconds(runs_of(runs, cell))
    for side in CELLS[cell].sides[1:]:
        other = seconds(runs_of(runs, cell, side))
        if mine and other:
            yield f"waggle is {other / mine:.2f} times as fast as {side}"
