#!/usr/bin/env python3
"""Measure the MLX backend and torch, and write mlx.json beside this file; standard library only.

    python3 tests/measured/mlx.py

It times the contract tests of both backends, plays 150 rounds of a swarm with both, and measures the peak memory of learning from
one group of 8 completions with the shape of Qwen2.5-0.5B. This takes an hour of one core, because MLX's wheel for Linux has a
slow BLAS; with OpenBLAS in LD_PRELOAD it takes some minutes.
"""

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import figures_file

PYTHON = figures_file.ROOT / ".venv/bin/python"
BACKENDS_AND_METHODS = [(backend, method) for backend in ("mlx", "torch") for method in ("full", "lora")]


def main() -> int:
    figures_file.require_clean_tree()
    figures: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder:
        contract, swarm = Path(folder) / "contract.json", Path(folder) / "swarm.json"
        began = time.monotonic()
        run_tests("tests/models/contract", f"--figures={contract}")
        figures["suite_seconds"] = round(time.monotonic() - began)
        run_tests("tests/end_to_end/test_backends.py", "-m", "slow", f"--figures={swarm}")
        for path in (contract, swarm):
            figures |= json.loads(path.read_text())
        model = output_of("-m", "waggle_lab", "shapes", "Qwen2.5-0.5B", "--out", folder).strip()
        for backend, method in BACKENDS_AND_METHODS:
            name = f"gib_{method}" if backend == "mlx" else f"gib_{method}_{backend}"
            figures[name] = float(output_of("tests/measured/peak_of_learning.py", backend, method, model))
    figures_file.write(Path(__file__).resolve(), dict(sorted(figures.items())))
    return 0


def run_tests(*arguments: str) -> None:
    subprocess.check_call([PYTHON, "-m", "pytest", *arguments], cwd=figures_file.ROOT)


def output_of(*arguments: str) -> str:
    """Run Python and return its output. `-P`, because this folder has a file mlx.py, which would hide the package."""
    environment = {**os.environ, "PYTHONPATH": str(figures_file.ROOT / "app")}
    return subprocess.check_output([PYTHON, "-P", *arguments], cwd=figures_file.ROOT, env=environment, text=True)


if __name__ == "__main__":
    raise SystemExit(main())
