#!/usr/bin/env python3
"""Runs the test command ten times, every second time beside a load, and adds a line for each run to suite.jsonl.

    python3 tests/measured/suite.py

Start it again after an interruption: it continues with the next run. Runs of the same source count, those of an older one do
not, and an interrupted run is not written. `load` counts processes that only compute, beside the tests; `load_before` is the
load average of the computer before the run, caused by other programs. `house.py` counts the green ones of the last ten lines.
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

import keep

LINES = Path(__file__).with_suffix(".jsonl")
RUNS, LOAD = 10, 8
COMMAND = [sys.executable, "packaging/dev.py", "test"]
SUMMARY = re.compile(r"Suite: (\d+) passed, (\d+) failed, (\d+) skipped, (\d+) workers lost in \d+ s")
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"  # it ends with this script, however that ends


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=RUNS)
    runs = parser.parse_args().runs
    keep.require_clean()
    while (number := len(of_this_source())) < runs:
        line = measured(LOAD if number % 2 else 0)
        with LINES.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(line) + "\n")
        print(f"Run {number + 1} of {runs}:", json.dumps(line), flush=True)
    print(sum(line["green"] is True for line in of_this_source()[-runs:]), "of", runs, "green")
    return 0


def measured(load: int) -> dict[str, object]:
    """Run the test command once, beside `load` busy processes."""
    began, before = time.time(), os.getloadavg()[0]
    output: list[str] = []
    with busy(load), subprocess.Popen(COMMAND, cwd=keep.ROOT, stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        for line in command.stdout:
            print(line, end="", flush=True)
            output.append(line.rstrip())
    summaries = [match for line in output if (match := SUMMARY.fullmatch(line))]
    passed, failed, skipped, lost_workers = map(int, summaries[-1].groups()) if summaries else (0, 0, 0, 0)
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)), "commit": commit(),
        "load": load, "load_before": round(before, 1), "cores": os.cpu_count(),
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


def commit() -> str:
    """The last commit that changed anything outside tests/measured: committing a run does not make another source."""
    return keep.said("git", "log", "-1", "--format=%H", "--", ".", ":!tests/measured").strip()


def of_this_source() -> list[dict[str, object]]:
    """The lines of runs of today's source, oldest first."""
    text = LINES.read_text(encoding="utf-8") if LINES.exists() else ""
    return [line for line in map(json.loads, text.splitlines()) if line["commit"] == commit()]


if __name__ == "__main__":
    raise SystemExit(main())
