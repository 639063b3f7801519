#!/usr/bin/env python3
"""Measure what taking part costs in swarms of every size, and how long joining takes; write scale.json. Standard library only.

    python3 tests/measured/scale.py [--only half|churn] [--real 8,16,32,64]

Linux and root only. It takes about a quarter of an hour of two cores, and five more minutes of churn, added to churn.jsonl.
To come to an hour of churn, call it several times, or `waggle-lab churn --log tests/measured/churn.jsonl --minutes 55` once.
`--only half` measures only the rounds in which a lesson reaches half of the nodes, and keeps all other figures: a busy computer
does not change those rounds. `--only churn` only counts churn.jsonl.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import figures_file

ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{figures_file.ROOT / 'app'}{os.pathsep}{figures_file.ROOT / 'tests'}"}
HERE = Path(__file__).resolve()
CHURN = HERE.with_name("churn.jsonl")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=("half", "churn"), help="replace only these figures")
    parser.add_argument("--real", default="8,16,32,64", help="sizes of real swarms")
    options = parser.parse_args()
    figures_file.require_clean_tree()
    match options.only:
        case "churn":
            update_figures(churn_figures())
        case "half":
            update_figures({"rounds_to_half": rounds_to_half(measure_scale(options.real))})
        case _:
            measured = measure_scale(options.real)
            figures = {**measured, "rounds_to_half": rounds_to_half(measured)}
            figures["join_nat_s"] = float(json.loads(output_of("tests/hostile/nat.py").splitlines()[-1])["seconds"])
            figures |= json.loads(output_of("tests/measured/joining.py").splitlines()[-1])
            output_of("-m", "waggle_lab", "churn", "--log", str(CHURN))
            figures_file.write(HERE, figures | churn_figures())
    return 0


def update_figures(figures: dict[str, Any]) -> None:
    """Replace some figures in scale.json, and keep the others."""
    before = json.loads(HERE.with_suffix(".json").read_text())
    figures_file.write(HERE, before["figures"] | figures, commit=before["commit"], machine=before["machine"])


def rounds_to_half(figures: dict[str, Any]) -> dict[str, Any]:
    return {"commit": figures_file.output_of("git", "rev-parse", "HEAD").strip(), **figures["rounds_to_half"]}


def churn_figures() -> dict[str, float]:
    """The sum over all runs of churn; each line of the log names its commit."""
    counting = "import json, sys; from pathlib import Path; from waggle_lab.reliability import churn; "
    counting += "print(json.dumps(churn.figures(churn.read(Path(sys.argv[1])))))"
    figures: dict[str, float] = json.loads(output_of("-c", counting, str(CHURN)))
    return figures


def measure_scale(sizes: str) -> dict[str, Any]:
    """Measure real and simulated swarms at the same time, each on a core."""
    command = ("-m", "waggle_lab", "scale", "--rounds", "3")
    with tempfile.TemporaryDirectory() as folder:
        figure_paths = [Path(folder) / name for name in ("simulated.json", "real.json")]
        simulation = start(*command, "--real", "none", "--out", str(figure_paths[0]))
        output_of(*command, "--real", sizes, "--simulated", "none", "--out", str(figure_paths[1]))
        simulation.communicate()
        figures, real = (json.loads(path.read_text()) for path in figure_paths)
    for name in ("kb_per_node_round", "payloads_per_node_round", "rounds_to_half"):
        figures[name]["real"] = real[name]["real"]
    return figures | {name: real[name] for name in ("packets_per_node_round", "cpu_s_per_node_round")}


def start(*command: str) -> subprocess.Popen[bytes]:
    python = str(figures_file.ROOT / ".venv/bin/python")
    return subprocess.Popen([python, *command], cwd=figures_file.ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE)


def output_of(*command: str) -> str:
    process = start(*command)
    output = process.communicate()[0].decode()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return output


if __name__ == "__main__":
    sys.exit(main())
