#!/usr/bin/env python3
"""Measures the MLX backend beside torch and writes mlx.json beside this file; Python's standard library only.

    python3 tests/measured/mlx.py

The contract of both backends, timed; 150 rounds of a swarm of both; and the peak memory of learning from one group of 8 answers
with the exact shape of Qwen2.5-0.5B. MLX's wheel for Linux brings a slow BLAS: that takes an hour of one core, and with OpenBLAS
in LD_PRELOAD some minutes.
"""

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import keep

PYTHON = keep.ROOT / ".venv/bin/python"
WAYS = [(backend, method) for backend in ("mlx", "torch") for method in ("full", "lora")]


def main() -> int:
    keep.require_clean()
    figures: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder:
        contract, swarm = Path(folder) / "contract.json", Path(folder) / "swarm.json"
        began = time.monotonic()
        tested("tests/models/contract", f"--figures={contract}")
        figures["suite_seconds"] = round(time.monotonic() - began)
        tested("tests/end_to_end/test_backends.py", "-m", "slow", f"--figures={swarm}")
        for path in (contract, swarm):
            figures |= json.loads(path.read_text())
        model = said("-m", "waggle_lab", "shapes", "Qwen2.5-0.5B", "--out", folder).strip()
        for backend, method in WAYS:
            name = f"gib_{method}" if backend == "mlx" else f"gib_{method}_{backend}"
            figures[name] = float(said("tests/measured/peak_of_learning.py", backend, method, model))
    keep.write(Path(__file__).resolve(), dict(sorted(figures.items())))
    return 0


def tested(*arguments: str) -> None:
    subprocess.check_call([PYTHON, "-m", "pytest", *arguments], cwd=keep.ROOT)


def said(*arguments: str) -> str:
    """`-P`: a file in this folder has the name of the package."""
    environment = {**os.environ, "PYTHONPATH": str(keep.ROOT / "app")}
    return subprocess.check_output([PYTHON, "-P", *arguments], cwd=keep.ROOT, env=environment, text=True)


if __name__ == "__main__":
    raise SystemExit(main())
