#!/usr/bin/env python3
"""Fuzz every decoder for some more minutes, and write fuzz.json beside this file; standard library only.

    python3 tests/measured/fuzz.py 60

The log in fuzz/ only grows, and the inputs so far are in the system's cache folder, so the hours can be spread over many runs and
computers. `fuzz_hours` is the smallest time of any decoder since its last finding.
"""

import json
import subprocess
import sys
from pathlib import Path

import figures_file

LOG = Path(__file__).with_suffix("") / "log.jsonl"


def main(minutes: str = "5") -> int:
    figures_file.require_clean_tree()
    options = ["--minutes", minutes, "--seeds", "tests/hostile/corpus", "--log", str(LOG)]
    code = subprocess.call([sys.executable, "packaging/dev.py", "lab", "fuzz", "all", *options], cwd=figures_file.ROOT)
    runs = [json.loads(line) for line in LOG.read_text().splitlines()]
    figures_file.write(Path(__file__).resolve(), figures(runs), commit=runs[-1]["commit"], machine=runs[-1]["machine"])
    return code


def decoder_names() -> list[str]:
    """All decoders, including those never fuzzed: each has a file of inputs in the corpus."""
    return sorted(path.stem for path in (figures_file.ROOT / "tests" / "hostile" / "corpus").glob("*.hex"))


def figures(runs: list[dict]) -> dict[str, float]:
    clean = dict.fromkeys(decoder_names(), 0.0)
    for run in runs:
        clean[run["decoder"]] = 0.0 if run["findings"] else clean.get(run["decoder"], 0.0) + run["seconds"]
    return {
        "fuzz_decoders": len(clean),
        "fuzz_hours": round(min(clean.values()) / 3600, 5),
        "fuzz_hours_sum": round(sum(run["seconds"] for run in runs) / 3600, 5),
        "fuzz_cpu_hours_sum": round(sum(run.get("cpu_seconds", 0.0) for run in runs) / 3600, 5),
        "fuzz_inputs": sum(run["executions"] for run in runs),
        "fuzz_findings": sum(len(run["findings"]) for run in runs),
    }


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:2]))
