#!/usr/bin/env python3
"""Plays the paper's table, extended, and writes lab_swarm.json beside this file; Python's standard library only.

    python3 tests/measured/lab_swarm.py

About eight hours of one core, shared between all there are. Finished runs are kept in lab_swarm/, so the command goes on where it
was stopped; report.html and the tables in that folder are made anew each time it ends.
"""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).with_suffix("")
RESULT = Path(__file__).with_suffix(".json")


def main() -> int:
    if dirty := said("git", "status", "--porcelain", "--", ":!tests/measured").strip():
        sys.exit(f"The tree has changes that no commit names:\n{dirty}")
    go_on = ["--resume"] if (FOLDER / "study.json").exists() else []
    command = ["packaging/dev.py", "run", "lab", "swarm", "--paper", "--out", str(FOLDER.relative_to(ROOT)), *go_on]
    subprocess.check_call([sys.executable, *command], cwd=ROOT)
    content = {
        "command": "python3 tests/measured/lab_swarm.py",
        "commit": said("git", "rev-parse", "HEAD").strip(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "figures": json.loads((FOLDER / "figures.json").read_text()),
    }
    RESULT.write_text(json.dumps(content, indent=2) + "\n")
    print(RESULT.read_text())
    return 0


def said(*command: str) -> str:
    return subprocess.check_output(command, cwd=ROOT, text=True)


if __name__ == "__main__":
    raise SystemExit(main())
