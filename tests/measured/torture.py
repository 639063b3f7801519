#!/usr/bin/env python3
"""Tortures a live two-node run and writes torture.json beside this file.

    python3 tests/measured/torture.py FOLDER [--minutes 120] [--kills 200] [--pauses 600] [--hours 8]

FOLDER keeps the nodes, every kill and every pause so far; a run that is begun again in it goes on. What was not measured in it
keeps the figures that it had, and `kills_commit` says of which commit the kills are: take a new folder for another commit.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import keep

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    keep.require_clean()
    asked = argparse.ArgumentParser()
    asked.add_argument("folder")
    chosen, options = asked.parse_known_args()
    python = ROOT / ".venv/bin/python"
    command = ["-m", "waggle_lab", "torture", "--out", str(Path(chosen.folder).resolve()), *options]
    subprocess.run([str(python), *command], cwd=ROOT / "app", check=False)
    counting = "import json, sys; from pathlib import Path; from waggle_lab.reliability import torture; "
    counting += "print(json.dumps(torture.summary(Path(sys.argv[1]))))"
    found = json.loads(keep.said(str(python), "-c", f"import sys; sys.path.insert(0, 'app'); {counting}", chosen.folder))
    script = Path(__file__).resolve()
    before = json.loads(script.with_suffix(".json").read_text())["figures"]
    killed = {"kills_commit": keep.said("git", "rev-parse", "HEAD").strip()} if "kills" in found else {}
    keep.write(script, before | killed | found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
