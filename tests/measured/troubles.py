#!/usr/bin/env python3
"""Put a live engine to sleep, cut its network, move its clock and exhaust its memory; write troubles.json beside this file.

    python3 tests/measured/troubles.py

It takes about six minutes and needs only the standard library. `..._reads` is what a person reads meanwhile. The network is cut
only with network namespaces (Linux, root), and the clock is moved only with libfaketime.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import figures_file


def main() -> int:
    figures_file.require_clean_tree()
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder) / "figures.json"
        tests = ["tests/end_to_end/test_troubles.py", "-m", "slow", f"--figures={figures}"]
        environment = {**os.environ, "PYTHONPATH": str(figures_file.ROOT / "app")}
        subprocess.check_call(
            [figures_file.ROOT / ".venv/bin/python", "-m", "pytest", *tests], cwd=figures_file.ROOT, env=environment
        )
        measured = json.loads(figures.read_text())
    figures_file.write(
        Path(__file__).resolve(),
        {name: round(value, 2) if isinstance(value, float) else value for name, value in sorted(measured.items())},
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
