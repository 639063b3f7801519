"""Measure one side of one cell and print one JSON line: python -m waggle_lab.benchmark.child CELL SIDE [FOLDER].

FOLDER is a model in the place of the cell's own.
"""

import importlib
import importlib.metadata
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from waggle_lab.benchmark import cells
from waggle_lab.benchmark.cells import CELLS, EQUAL, STARTER, Cell
from waggle_lab.benchmark.clock import Measurement, peak_gib

PACKAGES = {"trl": ("trl",), "genrl": ("gensyn-genrl",), "waggle": (), "generic": ()}


def main(name: str, side: str, other_model: str = "") -> None:
    _use_one_core()
    import torch

    torch.set_num_threads(1)
    if name == EQUAL:
        from waggle_lab.benchmark import equal

        _print(more=equal.measure(cells.folder_of(STARTER)))
        return
    cell = CELLS[name]
    folder = Path(other_model) if other_model else cells.folder_of(cell.model)
    measurement = _measure(side, cell, folder)
    peak = peak_gib() if cell.device == "cpu" else torch.cuda.max_memory_allocated() / 2**30
    _print(
        rounds=measurement.rounds, moved=measurement.moved, more=measurement.more, gib=peak,
        limits=_limits(name) if side == "waggle" and cell.device == "cpu" and not other_model else None,
        card="" if cell.device == "cpu" else torch.cuda.get_device_name(),
        versions={package: importlib.metadata.version(package) for package in ("torch", "transformers", *PACKAGES[side])},
    )  # fmt: skip


def _measure(side: str, cell: Cell, folder: Path) -> Measurement:
    """Call `measure` of the side's module: `waggle`, `generic`, `trl` or `genrl`."""
    measurement: Measurement = importlib.import_module(f"waggle_lab.benchmark.{side}").measure(cell, folder)
    return measurement


def _limits(name: str) -> dict[str, float]:
    from waggle_lab.benchmark import limits

    return asdict(limits.measure(CELLS[name].precision))


def _use_one_core() -> None:
    """Pin this process to one core, on systems that allow it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def _print(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
