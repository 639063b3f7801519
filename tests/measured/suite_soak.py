#!/usr/bin/env python3
"""Run the test command several times, alone or beside a load, and record each run as a line of suite_soak.jsonl.

    python3 tests/measured/suite_soak.py [--runs 1] [--load 0]

A quiet run takes about twelve minutes on two cores, one beside a load of 8 more than an hour. So the runs are spread over days
and commits: each line names the last commit that changed anything outside tests/measured, and house.py looks at the last ten
lines, whatever their commits. A failed run counts as failed; nobody may remove a line. An interrupted run leaves none.

In a line, `load` is the number of busy processes that this script ran beside the tests (0: a quiet run), `load_before` the load
average before the run, caused by other programs, and `green` whether every test passed and no worker was lost.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import figures_file

LINES = Path(__file__).with_suffix(".jsonl")
COMMAND = [sys.executable, "packaging/dev.py", "test"]
SUMMARY = re.compile(r"Suite: (\d+) passed, (\d+) failed, (\d+) skipped, (\d+) workers lost in \d+ s")
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"  # ends with this script, even if that is killed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1, help="how many runs to play (default: 1)")
    parser.add_argument("--load", type=int, default=0, help="busy processes beside the tests (default: 0)")
    options = parser.parse_args()
    figures_file.require_clean_tree()
    for _ in range(options.runs):
        line = json.dumps(measure_run(options.load))
        with LINES.open("a", encoding="utf-8") as lines:
            lines.write(line + "\n")
        print(line, flush=True)
    return 0


def measure_run(load: int) -> dict[str, object]:
    """Run the test command once, beside `load` busy processes."""
    began, load_before = time.time(), os.getloadavg()[0]
    output: list[str] = []
    with busy(load), subprocess.Popen(COMMAND, cwd=figures_file.ROOT, stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        for line in command.stdout:
            print(line, end="", flush=True)
            output.append(line.rstrip())
    summaries = [match for line in output if (match := SUMMARY.fullmatch(line))]
    passed, failed, skipped, lost_workers = map(int, summaries[-1].groups()) if summaries else (0, 0, 0, 0)
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)), "commit": figures_file.source_commit(),
        "load": load, "load_before": round(load_before, 1), "cores": os.cpu_count(),
        "green": command.returncode == 0 and lost_workers == 0, "exit_code": command.returncode,
        "passed": passed, "failed": failed, "skipped": skipped, "lost_workers": lost_workers,
        "seconds": round(time.time() - began),
        "failures": [line for line in output if line.startswith(("FAILED ", "ERROR "))],
    }  # fmt: skip


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep the processors busy with this number of processes."""
    with ExitStack() as stack:
        for _ in range(processes):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", BUSY]))
            stack.callback(process.kill)
        yield


if __name__ == "__main__":
    raise SystemExit(main())
