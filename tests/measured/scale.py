#!/usr/bin/env python3
"""Measures what taking part costs at every size and how fast one is in, and writes scale.json; Python's standard library only.

    python3 tests/measured/scale.py [--only half|churn] [--real 8,16,32,64]

Linux and root only. About a quarter of an hour of two cores, and five minutes more of churn, which is added to churn.jsonl:
called again and again, or `waggle-lab churn --log tests/measured/churn.jsonl --minutes 55` once, it comes to an hour. With
--only half all figures stay as they are, but for the rounds in which a group reaches half of the nodes: a busy computer makes
those no fewer. With --only churn what stands in churn.jsonl is counted, and nothing else is done.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import keep

ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{keep.ROOT / 'app'}{os.pathsep}{keep.ROOT / 'tests'}"}
HERE = Path(__file__).resolve()
CHURN = HERE.with_name("churn.jsonl")


def main() -> int:
    made = argparse.ArgumentParser()
    made.add_argument("--only", choices=("half", "churn"))
    made.add_argument("--real", default="8,16,32,64", help="sizes of real swarms")
    chosen = made.parse_args()
    keep.require_clean()
    match chosen.only:
        case "churn":
            again(churned())
        case "half":
            again({"rounds_to_half": half(scale(chosen.real))})
        case _:
            measured = scale(chosen.real)
            figures = {**measured, "rounds_to_half": half(measured)}
            figures["join_nat_s"] = float(json.loads(said("tests/hostile/nat.py").splitlines()[-1])["seconds"])
            figures |= json.loads(said("tests/measured/joining.py").splitlines()[-1])
            said("-m", "waggle_lab", "churn", "--log", str(CHURN))
            keep.write(HERE, figures | churned())
    return 0


def again(figures: dict[str, Any]) -> None:
    """Write some figures anew, and leave the others as they are."""
    before = json.loads(HERE.with_suffix(".json").read_text())
    keep.write(HERE, before["figures"] | figures, commit=before["commit"], machine=before["machine"])


def half(measured: dict[str, Any]) -> dict[str, Any]:
    return {"commit": keep.said("git", "rev-parse", "HEAD").strip(), **measured["rounds_to_half"]}


def churned() -> dict[str, float]:
    """The sum of all runs; each line of the log names its commit."""
    counting = "import json, sys; from pathlib import Path; from waggle_lab.reliability import churn; "
    counting += "print(json.dumps(churn.figures(churn.read(Path(sys.argv[1])))))"
    found: dict[str, float] = json.loads(said("-c", counting, str(CHURN)))
    return found


def scale(sizes: str) -> dict[str, Any]:
    """Real swarms and simulated ones side by side, each on a core."""
    command = ("-m", "waggle_lab", "scale", "--rounds", "3")
    with tempfile.TemporaryDirectory() as folder:
        halves = [Path(folder) / name for name in ("simulated.json", "real.json")]
        simulating = begun(*command, "--real", "none", "--out", str(halves[0]))
        said(*command, "--real", sizes, "--simulated", "none", "--out", str(halves[1]))
        simulating.communicate()
        figures, real = (json.loads(half.read_text()) for half in halves)
    for name in ("kb_per_node_round", "payloads_per_node_round", "rounds_to_half"):
        figures[name]["real"] = real[name]["real"]
    return figures | {name: real[name] for name in ("packets_per_node_round", "cpu_s_per_node_round")}


def begun(*command: str) -> subprocess.Popen[bytes]:
    python = str(keep.ROOT / ".venv/bin/python")
    return subprocess.Popen([python, *command], cwd=keep.ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE)


def said(*command: str) -> str:
    running = begun(*command)
    words = running.communicate()[0].decode()
    if running.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {running.returncode}")
    return words


if __name__ == "__main__":
    sys.exit(main())
