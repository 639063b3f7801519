#!/usr/bin/env python3
"""Measure first light in a fresh clone of HEAD, and write first_light.json beside this file; standard library only.

    python3 tests/measured/first_light.py

It sets the clone up as a new user would (timed), and runs the end-to-end tests there, which record their own figures.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import figures_file


def main() -> int:
    figures_file.require_clean_tree()
    with tempfile.TemporaryDirectory() as folder:
        clone, figures = Path(folder) / "clone", Path(folder) / "figures.json"
        subprocess.check_call(["git", "clone", "--quiet", str(figures_file.ROOT), str(clone)])
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
    figures_file.write(Path(__file__).resolve(), {name: round(value, 5) for name, value in sorted(measured.items())})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
