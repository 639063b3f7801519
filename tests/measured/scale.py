#!/usr/bin/env python3
"""Measures what taking part costs at every size and how fast one is in, and writes scale.json; Python's standard library only.

    python3 tests/measured/scale.py

Linux and root only. About a quarter of an hour of two cores.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import keep


def main() -> int:
    keep.require_clean()
    environment = {**os.environ, "PYTHONPATH": f"{keep.ROOT / 'app'}{os.pathsep}{keep.ROOT / 'tests'}"}
    python = str(keep.ROOT / ".venv/bin/python")

    def said(*command: str) -> str:
        return subprocess.run(
            [python, *command], cwd=keep.ROOT, env=environment, stdout=subprocess.PIPE, check=True
        ).stdout.decode()

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "figures.json"
        said("-m", "waggle", "lab", "scale", "--real", "8,16,32,64", "--out", str(out))
        figures = json.loads(out.read_text())
    figures["join_nat_s"] = float(json.loads(said("tests/hostile/nat.py").splitlines()[-1])["seconds"])
    figures |= json.loads(said("tests/measured/joining.py").splitlines()[-1])
    keep.write(Path(__file__).resolve(), figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
