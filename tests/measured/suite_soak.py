#!/usr/bin/env python3
"""Run the test command five times without and five times beside a load, and record each run as a line of suite_soak.jsonl.

    python3 tests/measured/suite_soak.py [--only quiet|loaded] [--load 8] [--runs 10]

To resume after an interruption, run the same command again. It counts the finished runs of this source in suite_soak.jsonl,
plays only the missing ones, quiet and loaded in turn, and exits at once if none is missing. An interrupted run leaves no line.

The source is the last commit that changed anything outside tests/measured: committing recorded runs does not start a new count,
but any other commit does. Lines of other sources stay in the file and do not count.

Quiet and loaded runs can be played at different times: `--only quiet` when nothing else runs, `--only loaded` at any time.

In a line, `load` is the number of busy processes that this script ran beside the tests (0: a quiet run), `load_before` the load
average before the run, caused by other programs, and `green` whether every test passed and no worker was lost. house.py counts
the green runs among the last ten, if at least five of them were beside a load of 8.
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
RUNS, LOAD = 10, 8
COMMAND = [sys.executable, "packaging/dev.py", "test"]
SUMMARY = re.compile(r"Suite: (\d+) passed, (\d+) failed, (\d+) skipped, (\d+) workers lost in \d+ s")
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"  # ends with this script, even if that is killed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=RUNS, help="how many runs in total, half of them loaded (default: 10)")
    parser.add_argument("--load", type=int, default=LOAD, help="busy processes beside a loaded run (default: 8)")
    parser.add_argument("--only", choices=("quiet", "loaded"), help="play only the missing runs of this kind")
    options = parser.parse_args()
    if options.load < 1:
        parser.error("--load must be at least 1; for runs without a load, use --only quiet")
    figures_file.require_clean_tree()
    while loads := missing_loads(runs_of_this_source(), options.runs, options.load, options.only):
        line = measure_run(loads[0])
        with LINES.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(line) + "\n")
        print(f"{len(loads) - 1} runs missing after:", json.dumps(line), flush=True)
    runs = runs_of_this_source()
    loaded = sum(run["load"] >= options.load for run in runs)
    print(
        f"{sum(run['green'] is True for run in runs)} of {len(runs)} runs green, {loaded} of them beside a load of {options.load}"
    )
    return 0


def missing_loads(runs: list[dict], count: int, load: int, only: str | None = None) -> list[int]:
    """The loads of the runs still to play, quiet and loaded in turn; `runs` are those of this source so far."""
    loaded = sum(run["load"] >= load for run in runs)
    quiet = sum(run["load"] == 0 for run in runs)
    missing_loaded = 0 if only == "quiet" else max(0, count // 2 - loaded)
    missing_quiet = 0 if only == "loaded" else max(0, count - count // 2 - quiet)
    in_turn = [0, load] * min(missing_quiet, missing_loaded)
    return in_turn + [0] * (missing_quiet - missing_loaded) + [load] * (missing_loaded - missing_quiet)


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


def runs_of_this_source() -> list[dict]:
    """The recorded runs of the current source, oldest first."""
    text = LINES.read_text(encoding="utf-8") if LINES.exists() else ""
    return [run for run in map(json.loads, text.splitlines()) if run["commit"] == figures_file.source_commit()]


if __name__ == "__main__":
    raise SystemExit(main())
