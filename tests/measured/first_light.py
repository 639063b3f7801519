#!/usr/bin/env python3
"""Measures first light in a fresh clone of HEAD and writes first_light.json beside this file; Python's standard library only.

    python3 tests/measured/first_light.py

Sets the clone up as a new user would (timed), then runs the end-to-end tests there, which put down their own figures.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULT = Path(__file__).with_suffix(".json")


def main() -> int:
    if dirty := said("git", "status", "--porcelain", "--", ":!tests/measured").strip():
        sys.exit(f"The tree has changes that no commit names:\n{dirty}")
    with tempfile.TemporaryDirectory() as folder:
        clone, figures = Path(folder) / "clone", Path(folder) / "figures.json"
        subprocess.check_call(["git", "clone", "--quiet", str(ROOT), str(clone)])
        began = time.monotonic()
        subprocess.check_call([sys.executable, "packaging/dev.py", "setup"], cwd=clone)
        seconds = time.monotonic() - began
        tests = ["tests/end_to_end/test_first_light.py", "tests/end_to_end/test_window.py"]
        python = clone / ".venv/bin/python"
        subprocess.check_call(
            [python, "-m", "pytest", *tests, f"--figures={figures}"],
            cwd=clone,
            env={**os.environ, "PYTHONPATH": str(clone / "app")},
        )
        measured = json.loads(figures.read_text())
        shutil.rmtree(clone)
    measured["setup_seconds"] = seconds
    write(measured)
    return 0


def write(figures: dict[str, float]) -> None:
    content = {
        "command": "python3 tests/measured/first_light.py",
        "commit": said("git", "rev-parse", "HEAD").strip(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "figures": {name: round(value, 5) for name, value in sorted(figures.items())},
    }
    RESULT.write_text(json.dumps(content, indent=2) + "\n")
    print(RESULT.read_text())


def said(*command: str) -> str:
    return subprocess.check_output(command, cwd=ROOT, text=True)


if __name__ == "__main__":
    raise SystemExit(main())
