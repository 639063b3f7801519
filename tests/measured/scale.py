#!/usr/bin/env python3
"""Measures what taking part costs at every size and how fast one is in, and writes scale.json; Python's standard library only.

    python3 tests/measured/scale.py

Linux and root only. About a quarter of an hour of two cores, and five minutes more of churn, which is added to churn.jsonl:
called again and again, or `waggle lab churn --log tests/measured/churn.jsonl --minutes 55` once, it comes to an hour.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import keep


def main() -> int:
    keep.require_clean()
    environment = {**os.environ, "PYTHONPATH": f"{keep.ROOT / 'app'}{os.pathsep}{keep.ROOT / 'tests'}"}
    python = str(keep.ROOT / ".venv/bin/python")

    def begun(*command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([python, *command], cwd=keep.ROOT, env=environment, stdout=subprocess.PIPE)

    def said(*command: str) -> str:
        return subprocess.run(
            [python, *command], cwd=keep.ROOT, env=environment, stdout=subprocess.PIPE, check=True
        ).stdout.decode()

    with tempfile.TemporaryDirectory() as folder:
        halves = [Path(folder) / name for name in ("simulated.json", "real.json")]
        simulating = begun("-m", "waggle", "lab", "scale", "--real", "none", "--rounds", "3", "--out", str(halves[0]))
        said(
            "-m",
            "waggle",
            "lab",
            "scale",
            "--real",
            "8,16,32,64",
            "--simulated",
            "none",
            "--rounds",
            "3",
            "--out",
            str(halves[1]),
        )
        simulating.communicate()
        figures, real = (json.loads(half.read_text()) for half in halves)
    for name in ("kb_per_node_round", "payloads_per_node_round"):
        figures[name]["real"] = real[name]["real"]
    figures |= {name: real[name] for name in ("packets_per_node_round", "cpu_s_per_node_round")}
    figures["join_nat_s"] = float(json.loads(said("tests/hostile/nat.py").splitlines()[-1])["seconds"])
    figures |= json.loads(said("tests/measured/joining.py").splitlines()[-1])
    churned = begun("-m", "waggle", "lab", "churn", "--log", str(keep.ROOT / "tests/measured/churn.jsonl")).communicate()[0]
    figures |= {name: float(value) for name, value in map(str.split, churned.decode().splitlines())}
    keep.write(Path(__file__).resolve(), figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
