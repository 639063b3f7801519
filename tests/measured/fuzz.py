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

ROOT = Path(__file__).resolve().parents[2]
LOG = Path(__file__).with_suffix("") / "log.jsonl"
RESULT = Path(__file__).with_suffix(".json")


def main(minutes: str = "5") -> int:
    if dirty := said("git", "status", "--porcelain", "--", ":!tests/measured").strip():
        sys.exit(f"The tree has changes that no commit names:\n{dirty}")
    options = ["--minutes", minutes, "--seeds", "tests/hostile/corpus", "--log", str(LOG)]
    code = subprocess.call([sys.executable, "packaging/dev.py", "run", "lab", "fuzz", "all", *options], cwd=ROOT)
    slices = [json.loads(line) for line in LOG.read_text().splitlines()]
    content = {
        "command": "python3 tests/measured/fuzz.py",
        "commit": slices[-1]["commit"],
        "machine": slices[-1]["machine"],
        "figures": figures(slices),
    }
    RESULT.write_text(json.dumps(content, indent=2) + "\n")
    print(RESULT.read_text())
    return code


def figures(slices: list[dict]) -> dict[str, float]:
    clean: dict[str, float] = {}
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


def said(*command: str) -> str:
    return subprocess.check_output(command, cwd=ROOT, text=True)


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:2]))
