#!/usr/bin/env python3
"""Run `waggle-lab torture`, and write torture.json beside this file.

    python3 tests/measured/torture.py FOLDER [--minutes 120] [--kills 200] [--pauses 600] [--hours 8]

FOLDER has the nodes, and every kill and pause so far; another run in it continues. Figures of parts that were not measured stay.
`kills_commit` is the commit of the kills, so use a new folder for another commit.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import figures_file

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    figures_file.require_clean_tree()
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", help="the folder of the nodes and results")
    known, options = parser.parse_known_args()
    python = ROOT / ".venv/bin/python"
    command = ["-m", "waggle_lab", "torture", "--out", str(Path(known.folder).resolve()), *options]
    subprocess.run([str(python), *command], cwd=ROOT / "app", check=False)
    counting = "import json, sys; from pathlib import Path; from waggle_lab.reliability import torture; "
    counting += "print(json.dumps(torture.summary(Path(sys.argv[1]))))"
    figures = json.loads(
        figures_file.output_of(str(python), "-c", f"import sys; sys.path.insert(0, 'app'); {counting}", known.folder)
    )
    script = Path(__file__).resolve()
    before = json.loads(script.with_suffix(".json").read_text())["figures"]
    kills_commit = {"kills_commit": figures_file.output_of("git", "rev-parse", "HEAD").strip()} if "kills" in figures else {}
    figures_file.write(script, before | kills_commit | figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
