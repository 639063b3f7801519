#!/usr/bin/env python3
"""Plays the same round in Waggle, TRL and GenRL's trainer, and writes bench.json beside this file: bench.py [ARGUMENTS].

What was measured is kept in bench/, so that the command goes on where it was stopped; without that folder it measures anew. All
of it takes two hours of one core. ARGUMENTS go to `waggle-lab bench`: --cells tiny, --cells paper-lean,paper-lora,
--repetitions 1, or --report.
"""

import json
import subprocess
import sys
from pathlib import Path

import keep

FOLDER = Path(__file__).with_suffix("")


def main(*arguments: str) -> int:
    keep.require_clean()
    command = ["packaging/dev.py", "bench", "--out", str(FOLDER), *arguments]
    subprocess.check_call([sys.executable, *command], cwd=keep.ROOT)
    keep.write(Path(__file__).resolve(), json.loads((FOLDER / "figures.json").read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
