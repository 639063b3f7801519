#!/usr/bin/env python3
"""Puts a live engine to sleep, off its network, to another day and out of memory, and writes troubles.json beside this file.

    python3 tests/measured/troubles.py

About six minutes; Python's standard library only. `..._reads` is what a person reads meanwhile. The network is cut where
namespaces can be made (Linux, root), the clock is moved where libfaketime is there.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import keep


def main() -> int:
    keep.require_clean()
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder) / "figures.json"
        tests = ["tests/end_to_end/test_troubles.py", "-m", "slow", f"--figures={figures}"]
        environment = {**os.environ, "PYTHONPATH": str(keep.ROOT / "app")}
        subprocess.check_call([keep.ROOT / ".venv/bin/python", "-m", "pytest", *tests], cwd=keep.ROOT, env=environment)
        measured = json.loads(figures.read_text())
    keep.write(
        Path(__file__).resolve(),
        {name: round(value, 2) if isinstance(value, float) else value for name, value in sorted(measured.items())},
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
