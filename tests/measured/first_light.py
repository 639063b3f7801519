#!/usr/bin/env python3
"""Measures first light in a fresh clone of HEAD and writes first_light.json beside this file; Python's standard library only.

    python3 tests/measured/first_light.py

Sets the clone up as a new user would (timed), then runs the end-to-end tests there, which put down their own figures.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import keep


def main() -> int:
    keep.require_clean()
    with tempfile.TemporaryDirectory() as folder:
        clone, figures = Path(folder) / "clone", Path(folder) / "figures.json"
        subprocess.check_call(["git", "clone", "--quiet", str(keep.ROOT), str(clone)])
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
    keep.write(Path(__file__).resolve(), {name: round(value, 5) for name, value in sorted(measured.items())})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
