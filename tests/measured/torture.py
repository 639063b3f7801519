#!/usr/bin/env python3
"""Tortures a live two-node run and writes torture.json beside this file: torture.py FOLDER [MINUTES] [KILLS].

FOLDER keeps the nodes and every kill so far; a run that is begun again in it goes on. With 0 minutes it only counts.
"""

import json
import subprocess
import sys
from pathlib import Path

import keep

ROOT = Path(__file__).resolve().parents[2]


def main(folder: str, minutes: str = "120", kills: str = "200", pauses: str = "600", calm: str = "10") -> int:
    keep.require_clean()
    python = ROOT / ".venv/bin/python"
    if float(minutes):
        options = ["--out", folder, "--minutes", minutes, "--kills", kills, "--pauses", pauses, "--calm", calm]
        subprocess.run([str(python), "-m", "waggle", "lab", "torture", *options], cwd=ROOT / "app", check=False)
    counting = "import json, sys; from pathlib import Path; from waggle.lab import torture; "
    counting += "print(json.dumps(torture.summary(Path(sys.argv[1]))))"
    figures = json.loads(keep.said(str(python), "-c", f"import sys; sys.path.insert(0, 'app'); {counting}", folder))
    keep.write(Path(__file__).resolve(), figures)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
