"""`waggle-lab bench`: time the same round in Waggle, TRL and GenRL's trainer, by phase, with peak memory and share of the limit.

`packaging/dev.py bench` installs the other two; without them only Waggle is measured. Times are CPU seconds of one core and one
thread. Each side of a cell is a process of its own, and the sides take turns. A run continues where the last one stopped.
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

MODULES = {"waggle": "waggle", "generic": "transformers", "trl": "trl", "genrl": "genrl"}
NOT_BY_DEFAULT = ("cuda", "paper-lean", "paper-lora", "smollm2")  # hours of one core, a GPU, or tests/measured/models.py
DEFAULT_CELLS = ",".join([EQUAL, *(name for name in CELLS if name not in NOT_BY_DEFAULT)])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cells",
        default=DEFAULT_CELLS,
        help=f"some of {EQUAL}, {', '.join(CELLS)} (default: all but {', '.join(NOT_BY_DEFAULT)})",
    )
    parser.add_argument("--sides", default=",".join(MODULES), help="which trainers to measure")
    parser.add_argument("--repetitions", type=whole(1), default=3, help="at most so many processes for each side of a cell")
    parser.add_argument("--out", type=Path, help="folder for results; a run continues from the results in it")
    parser.add_argument("--report", action="store_true", help="measure nothing, only print what was measured")


def run(arguments: argparse.Namespace) -> int:
    """Measure what is missing, print the table, and write figures.json."""
    folder = arguments.out or paths.cache() / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    book = folder / "runs.jsonl"
    if not arguments.report:
        for cell, side in _missing(arguments, book):
            _say(f"{cell}, {side} ...")
            json_lines_file.append(book, _measure(cell, side))
    runs = report.read(book)
    _say(report.table(runs))
    (folder / "figures.json").write_text(json.dumps(report.figures(runs), indent=2) + "\n", encoding="utf-8")
    return 0


def _missing(arguments: argparse.Namespace, book: Path) -> Iterator[tuple[str, str]]:
    """What is still to be measured: the first repetition of every cell and side, then the second of every one."""
    names = arguments.cells.split(",")
    if unknown := [name for name in names if name not in {EQUAL, *CELLS}]:
        raise LabError(f"There is no cell {unknown[0]}.", f"Choose some of {EQUAL}, {', '.join(CELLS)}.")
    chosen_sides = arguments.sides.split(",")
    if unknown := [side for side in chosen_sides if side not in MODULES]:
        raise LabError(f"There is no side {unknown[0]}.", f"Choose some of {', '.join(MODULES)}.")
    sides = [side for side in chosen_sides if importlib.util.find_spec(MODULES[side])]
    for side in [side for side in chosen_sides if side not in sides]:
        _say(f"{side} is not installed and is left out; packaging/dev.py bench installs it.")
    for repetition in range(arguments.repetitions):
        for name in names:
            for side in _sides(name, repetition, sides):
                if sum((earlier_run.cell, earlier_run.side) == (name, side) for earlier_run in report.read(book)) <= repetition:
                    yield name, side


def _sides(name: str, repetition: int, sides: list[str]) -> list[str]:
    if name == EQUAL:
        return ["waggle"] if repetition == 0 and "trl" in sides else []
    cell = CELLS[name]
    if cell.device == "cuda" and not _has_cuda():
        if repetition == 0:
            _say(f"{name} is left out: this computer has no CUDA.")
        return []
    return [side for side in cell.sides if side in sides and repetition < cell.repetitions]


def _has_cuda() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def _measure(cell: str, side: str) -> dict[str, object]:
    """Measure one side of a cell in a child process; raises LabError if it fails."""
    environment = os.environ | {
        "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"
    }  # fmt: skip
    if side != "waggle":
        environment["THP_MEM_ALLOC_ENABLE"] = "0"  # huge pages are a setting of Waggle's, not of the other trainers
    done = subprocess.run(
        [sys.executable, "-m", "waggle_lab.benchmark.child", cell, side], env=environment, capture_output=True, text=True
    )
    if done.returncode == -9:
        raise LabError(f"{cell} of {side} was killed, probably because memory ran out.", "Close other programs and try again.")
    if done.returncode:
        raise LabError(f"{cell} of {side} could not be measured: {done.stderr.strip()[-300:]}")
    measurement: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return {"cell": cell, "side": side, "commit": provenance.commit(), "machine": provenance.machine()} | measurement


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
