"""One side of one cell, in a process of its own on one core: python -m waggle.lab.bench_child CELL SIDE; prints one JSON line."""

import importlib
import importlib.metadata
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from waggle.lab import bench_cells
from waggle.lab.bench_cells import CELLS, EQUAL, STARTER, Cell
from waggle.lab.bench_clock import Measured, peak_gib

PACKAGES = {"trl": ("trl",), "genrl": ("gensyn-genrl",), "waggle": ()}


def main(name: str, side: str) -> None:
    _use_one_core()
    import torch

    torch.set_num_threads(1)
    if name == EQUAL:
        from waggle.lab import bench_equal

        _print(more=bench_equal.measure(bench_cells.folder_of(STARTER)))
        return
    cell = CELLS[name]
    folder = bench_cells.folder_of(cell.model)
    found = _measured(side, cell, folder)
    peak = peak_gib() if cell.device == "cpu" else torch.cuda.max_memory_allocated() / 2**30
    _print(
        rounds=found.rounds, moved=found.moved, more=found.more, gib=peak,
        limits=_limits(name) if side == "waggle" and cell.device == "cpu" else None,
        card="" if cell.device == "cpu" else torch.cuda.get_device_name(),
        versions={package: importlib.metadata.version(package) for package in ("torch", "transformers", *PACKAGES[side])},
    )  # fmt: skip


def _measured(side: str, cell: Cell, folder: Path) -> Measured:
    """By one of three modules that are alike."""
    found: Measured = importlib.import_module(f"waggle.lab.bench_{side}").measure(cell, folder)
    return found


def _limits(name: str) -> dict[str, float]:
    from waggle.lab import bench_limits

    return asdict(bench_limits.measure(CELLS[name].precision))


def _use_one_core() -> None:
    """Where the system lets a process choose."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def _print(**what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
