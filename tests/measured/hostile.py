#!/usr/bin/env python3
"""Besieges a live swarm with every attack and writes hostile.json beside this file; Python's standard library only.

    python3 tests/measured/hostile.py

About three hours of two cores. Finished sieges are kept in hostile/, so the command goes on where it was stopped. The partition
is measured where network namespaces can be made (Linux, root); audit and fuzzing are read from what they left behind.
"""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import fuzz

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).with_suffix("")
RESULT = Path(__file__).with_suffix(".json")


def main() -> int:
    if dirty := said("git", "status", "--porcelain", "--", ":!tests/measured").strip():
        sys.exit(f"The tree has changes that no commit names:\n{dirty}")
    command = ["packaging/dev.py", "run", "lab", "hostile", "--out", str(FOLDER.relative_to(ROOT)), "--resume"]
    subprocess.check_call([sys.executable, *command], cwd=ROOT)
    content = {
        "command": "python3 tests/measured/hostile.py",
        "commit": said("git", "rev-parse", "HEAD").strip(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "figures": {**json.loads((FOLDER / "figures.json").read_text()), **partition(), **audit(), **fuzzing()},
    }
    RESULT.write_text(json.dumps(content, indent=2) + "\n")
    print(RESULT.read_text())
    return 0


def partition() -> dict[str, object]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'app'}{os.pathsep}{ROOT / 'tests'}"}
    python = ROOT / ".venv/bin/python"
    done = subprocess.run(
        [python, "tests/hostile/partition.py", "--runs", "3"], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout) if done.returncode == 0 else {"partition_heal_s": "not measured: no network namespaces"}


def audit() -> dict[str, int]:
    _heading, *lines = (ROOT / "resources/audit.jsonl").read_text().splitlines()
    listed = sum(json.loads(line)["listed"] for line in lines)
    return {"datasets_audited": len(lines), "datasets_listed": listed}


def fuzzing() -> dict[str, float]:
    found = fuzz.figures([json.loads(line) for line in fuzz.LOG.read_text().splitlines()])
    return {"fuzz_hours": found["fuzz_hours"], "fuzz_hours_sum": found["fuzz_hours_sum"]}


def said(*command: str) -> str:
    return subprocess.check_output(command, cwd=ROOT, text=True)


if __name__ == "__main__":
    raise SystemExit(main())
