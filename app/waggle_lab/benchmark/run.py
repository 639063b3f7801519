"""`waggle-lab bench`: the same round in Waggle, in TRL and in GenRL's trainer, by phase, with its peak memory and its limits.

`packaging/dev.py bench` brings the other two along; without them Waggle alone is measured. What counts is CPU seconds of one core
and one thread; each side of a cell is a process of its own, and the sides take turns. What was measured is not measured again.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from waggle.core import paths
from waggle.core.errors import LabError
from waggle.practice import json_lines_file
from waggle_lab import provenance
from waggle_lab.argument_types import whole
from waggle_lab.benchmark import report
from waggle_lab.benchmark.cells import CELLS, EQUAL

MODULES = {"waggle": "waggle", "trl": "trl", "genrl": "genrl"}
NOT_BY_ITSELF = ("cuda", "paper-lean", "paper-lora")  # hours of one core, or a GPU
USUAL = ",".join([EQUAL, *(name for name in CELLS if name not in NOT_BY_ITSELF)])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cells", default=USUAL, help=f"of {EQUAL}, {', '.join(CELLS)} (default: but for {NOT_BY_ITSELF})")
    parser.add_argument("--sides", default=",".join(MODULES), help="who plays")
    parser.add_argument("--repetitions", type=whole(1), default=3, help="of each side of a cell, at most")
    parser.add_argument("--out", type=Path, help="the folder of what was measured; what is there already is kept")
    parser.add_argument("--report", action="store_true", help="measure nothing, say what was measured")


def run(arguments: argparse.Namespace) -> int:
    """Measure what is missing, print the table, and write figures.json."""
    folder = arguments.out or paths.cache() / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    book = folder / "runs.jsonl"
    if not arguments.report:
        for cell, side in _missing(arguments, book):
            _say(f"{cell}, {side} ...")
            json_lines_file.append(book, _measured(cell, side))
    runs = report.read(book)
    _say(report.table(runs))
    (folder / "figures.json").write_text(json.dumps(report.figures(runs), indent=2) + "\n", encoding="utf-8")
    return 0


def _missing(arguments: argparse.Namespace, book: Path) -> Iterator[tuple[str, str]]:
    """What is still to be measured: the first repetition of everything, then the second of everything."""
    names = arguments.cells.split(",")
    if unknown := [name for name in names if name not in {EQUAL, *CELLS}]:
        raise LabError(f"There is no cell {unknown[0]}.", f"Choose some of {EQUAL}, {', '.join(CELLS)}.")
    asked = arguments.sides.split(",")
    if unknown := [side for side in asked if side not in MODULES]:
        raise LabError(f"There is no side {unknown[0]}.", f"Choose some of {', '.join(MODULES)}.")
    sides = [side for side in asked if importlib.util.find_spec(MODULES[side])]
    for side in [side for side in asked if side not in sides]:
        _say(f"{side} is not here, and is left out: packaging/dev.py bench brings it along.")
    for repetition in range(arguments.repetitions):
        for name in names:
            for side in _sides(name, repetition, sides):
                if sum((one.cell, one.side) == (name, side) for one in report.read(book)) <= repetition:
                    yield name, side


def _sides(name: str, repetition: int, sides: list[str]) -> list[str]:
    if name == EQUAL:
        return ["waggle"] if repetition == 0 and "trl" in sides else []
    cell = CELLS[name]
    if cell.device == "cuda" and not _has_cuda():
        if repetition == 0:
            _say(f"{name} is left out: there is no CUDA here.")
        return []
    return [side for side in cell.sides if side in sides and repetition < cell.repetitions]


def _has_cuda() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def _measured(cell: str, side: str) -> dict[str, object]:
    """What a process of its own says; raises LabError where it fails."""
    environment = os.environ | {
        "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"
    }  # fmt: skip
    if side != "waggle":
        environment["THP_MEM_ALLOC_ENABLE"] = "0"  # torch as it comes, not as Waggle's policy room sets it
    done = subprocess.run(
        [sys.executable, "-m", "waggle_lab.benchmark.child", cell, side], env=environment, capture_output=True, text=True
    )
    if done.returncode == -9:
        raise LabError(f"{cell} of {side} was killed, as for want of memory.", "Close other programs, and begin again.")
    if done.returncode:
        raise LabError(f"{cell} of {side} could not be measured: {done.stderr.strip()[-300:]}")
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return {"cell": cell, "side": side, "commit": provenance.commit(), "machine": provenance.machine()} | found


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
