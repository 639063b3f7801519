#!/usr/bin/env python3
"""Fuzzes every decoder for some more minutes and writes fuzz.json beside this file; Python's standard library only.

    python3 tests/measured/fuzz.py 60

The log in fuzz/ only grows, and the inputs found so far are kept in the system's cache folder, so the hours can be spread over
many runs and computers. `fuzz_hours` belongs to the decoder that has been fuzzed least since something was found in it.
"""

import json
import subprocess
import sys
from pathlib import Path

import keep

LOG = Path(__file__).with_suffix("") / "log.jsonl"


def main(minutes: str = "5") -> int:
    keep.require_clean()
    options = ["--minutes", minutes, "--seeds", "tests/hostile/corpus", "--log", str(LOG)]
    code = subprocess.call([sys.executable, "packaging/dev.py", "lab", "fuzz", "all", *options], cwd=keep.ROOT)
    slices = [json.loads(line) for line in LOG.read_text().splitlines()]
    keep.write(Path(__file__).resolve(), figures(slices), commit=slices[-1]["commit"], machine=slices[-1]["machine"])
    return code


def names() -> list[str]:
    """All decoders, those that were never fuzzed as well: each has inputs that are kept."""
    return sorted(path.stem for path in (keep.ROOT / "tests" / "hostile" / "corpus").glob("*.hex"))


def figures(slices: list[dict]) -> dict[str, float]:
    clean = dict.fromkeys(names(), 0.0)
    for each in slices:
        clean[each["decoder"]] = 0.0 if each["findings"] else clean.get(each["decoder"], 0.0) + each["seconds"]
    return {
        "fuzz_decoders": len(clean),
        "fuzz_hours": round(min(clean.values()) / 3600, 5),
        "fuzz_hours_sum": round(sum(each["seconds"] for each in slices) / 3600, 5),
        "fuzz_cpu_hours_sum": round(sum(each.get("cpu_seconds", 0.0) for each in slices) / 3600, 5),
        "fuzz_inputs": sum(each["executions"] for each in slices),
        "fuzz_findings": sum(len(each["findings"]) for each in slices),
    }


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:2]))
