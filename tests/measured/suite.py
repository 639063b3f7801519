#!/usr/bin/env python3
"""Runs the test command ten times, every second time beside a load, and adds a line for each run to suite.jsonl.

    python3 tests/measured/suite.py

Start it again to go on after an interruption: runs of the same source count, those of an older one do not. A run that was
interrupted is not written. The load is processes that do nothing but compute; `load_before` is that of other programs, too.
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
    print(json.dumps({"suite_green_of_10": green_of_10()}))
    return 0


def measured(load: int) -> dict[str, object]:
    """Run the test command once beside so many busy processes."""
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
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)), "commit": commit(), "load": load,
        "load_before": round(before, 1), "cores": os.cpu_count(), "exit_code": command.returncode, "passed": passed,
        "failed": failed, "skipped": skipped, "lost_workers": lost_workers, "seconds": round(time.time() - began),
        "failures": [line for line in output if line.startswith(("FAILED ", "ERROR "))],
    }  # fmt: skip


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep the processors busy with so many processes."""
    with ExitStack() as stack:
        for _ in range(processes):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", BUSY]))
            stack.callback(process.kill)
        yield


def commit() -> str:
    """The last commit that changed anything but figures: those of one run do not make another source for the next."""
    return keep.said("git", "log", "-1", "--format=%H", "--", ".", ":!tests/measured").strip()


def of_this_source() -> list[dict[str, object]]:
    """The lines of runs of today's source, oldest first."""
    text = LINES.read_text(encoding="utf-8") if LINES.exists() else ""
    return [line for line in map(json.loads, text.splitlines()) if line["commit"] == commit()]


def green_of_10() -> int:
    """How many of the last ten runs of this source ended with exit code 0 and without a lost worker."""
    return sum(line["exit_code"] == 0 and line["lost_workers"] == 0 for line in of_this_source()[-RUNS:])


if __name__ == "__main__":
    raise SystemExit(main())
