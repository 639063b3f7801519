#!/usr/bin/env python3
"""Attack a live swarm with every attack, and write hostile.json beside this file; standard library only.

    python3 tests/measured/hostile.py

It takes about three hours of two cores. Finished sieges are saved in hostile/, so the command continues where it was stopped. The
partition is measured only with network namespaces (Linux, root); figures of audit and fuzzing come from their own results.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import figures_file
import fuzz

FOLDER = Path(__file__).with_suffix("")


def main() -> int:
    figures_file.require_clean_tree()
    command = ["packaging/dev.py", "lab", "hostile", "--out", str(FOLDER.relative_to(figures_file.ROOT)), "--resume"]
    subprocess.check_call([sys.executable, *command], cwd=figures_file.ROOT)
    commits = {json.loads(line)["commit"] for line in (FOLDER / "sieges.jsonl").read_text().splitlines()}
    figures = {**json.loads((FOLDER / "figures.json").read_text()), **partition(), **audit(), **fuzzing()}
    figures_file.write(Path(__file__).resolve(), figures, commit=", ".join(sorted(commits)))
    return 0


def partition() -> dict[str, object]:
    environment = {**os.environ, "PYTHONPATH": f"{figures_file.ROOT / 'app'}{os.pathsep}{figures_file.ROOT / 'tests'}"}
    python = figures_file.ROOT / ".venv/bin/python"
    process = subprocess.run(
        [python, "tests/hostile/partition.py", "--runs", "3"],
        cwd=figures_file.ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(process.stdout) if process.returncode == 0 else {"partition_heal_s": "not measured: no network namespaces"}


def audit() -> dict[str, int]:
    _heading, *lines = (figures_file.ROOT / "resources/audit.jsonl").read_text().splitlines()
    listed = sum(json.loads(line)["listed"] for line in lines)
    return {"datasets_audited": len(lines), "datasets_listed": listed}


def fuzzing() -> dict[str, float]:
    figures = fuzz.figures([json.loads(line) for line in fuzz.LOG.read_text().splitlines()])
    return {"fuzz_hours": figures["fuzz_hours"], "fuzz_hours_sum": figures["fuzz_hours_sum"]}


if __name__ == "__main__":
    raise SystemExit(main())
