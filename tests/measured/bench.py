#!/usr/bin/env python3
"""Plays the same round in Waggle, TRL and GenRL's trainer, and writes bench.json beside this file: bench.py FOLDER [ARGUMENTS].

FOLDER keeps what was measured; a run that is begun again in it measures only what is missing. All of it takes two hours of one
core. ARGUMENTS go to `waggle lab bench`: --cells tiny, --cells paper-lean,paper-lora, --repetitions 1, or --report.
"""

import json
import subprocess
import sys
from pathlib import Path

import keep


def main(folder: str, *arguments: str) -> int:
    keep.require_clean()
    command = ["packaging/dev.py", "bench", "--out", str(Path(folder).resolve()), *arguments]
    subprocess.check_call([sys.executable, *command], cwd=keep.ROOT)
    keep.write(Path(__file__).resolve(), json.loads((Path(folder) / "figures.json").read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
