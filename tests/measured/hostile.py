#!/usr/bin/env python3
"""Besieges a live swarm with every attack and writes hostile.json beside this file; Python's standard library only.

    python3 tests/measured/hostile.py

About three hours of two cores. Finished sieges are kept in hostile/, so the command goes on where it was stopped. The partition
is measured where network namespaces can be made (Linux, root); audit and fuzzing are read from what they left behind.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import fuzz
import keep

FOLDER = Path(__file__).with_suffix("")


def main() -> int:
    keep.require_clean()
    command = ["packaging/dev.py", "lab", "hostile", "--out", str(FOLDER.relative_to(keep.ROOT)), "--resume"]
    subprocess.check_call([sys.executable, *command], cwd=keep.ROOT)
    commits = {json.loads(line)["commit"] for line in (FOLDER / "sieges.jsonl").read_text().splitlines()}
    figures = {**json.loads((FOLDER / "figures.json").read_text()), **partition(), **audit(), **fuzzing()}
    keep.write(Path(__file__).resolve(), figures, commit=", ".join(sorted(commits)))
    return 0


def partition() -> dict[str, object]:
    environment = {**os.environ, "PYTHONPATH": f"{keep.ROOT / 'app'}{os.pathsep}{keep.ROOT / 'tests'}"}
    python = keep.ROOT / ".venv/bin/python"
    done = subprocess.run(
        [python, "tests/hostile/partition.py", "--runs", "3"], cwd=keep.ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout) if done.returncode == 0 else {"partition_heal_s": "not measured: no network namespaces"}


def audit() -> dict[str, int]:
    _heading, *lines = (keep.ROOT / "resources/audit.jsonl").read_text().splitlines()
    listed = sum(json.loads(line)["listed"] for line in lines)
    return {"datasets_audited": len(lines), "datasets_listed": listed}


def fuzzing() -> dict[str, float]:
    found = fuzz.figures([json.loads(line) for line in fuzz.LOG.read_text().splitlines()])
    return {"fuzz_hours": found["fuzz_hours"], "fuzz_hours_sum": found["fuzz_hours_sum"]}


if __name__ == "__main__":
    raise SystemExit(main())
