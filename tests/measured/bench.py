#!/usr/bin/env python3
"""Time the same round in Waggle, TRL and GenRL's trainer, and write bench.json beside this file: bench.py [ARGUMENTS].

Results are saved in bench/, so the command continues where it was stopped; without that folder it starts again. Everything takes
two hours of one core. ARGUMENTS go to `waggle-lab bench`: --cells tiny, --cells paper-lean,paper-lora, --repetitions 1, or
--report.
"""

import json
import subprocess
import sys
from pathlib import Path

import figures_file

FOLDER = Path(__file__).with_suffix("")


def main(*arguments: str) -> int:
    figures_file.require_clean_tree()
    command = ["packaging/dev.py", "bench", "--out", str(FOLDER), *arguments]
    subprocess.check_call([sys.executable, *command], cwd=figures_file.ROOT)
    figures_file.write(Path(__file__).resolve(), json.loads((FOLDER / "figures.json").read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
