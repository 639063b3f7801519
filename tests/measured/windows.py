#!/usr/bin/env python3
"""Run Waggle on Windows' own Python under Wine, and write windows.json beside this file and pictures into windows/.

    sudo WAGGLE_WINDOWS_RIG=FOLDER .venv/bin/python tests/measured/windows.py [FIGURES COMMIT]

FIGURES is what an earlier run measured at COMMIT (pytest's --figures): the reasons of its failures are written anew.
It builds the Windows in FOLDER if there is none (5 GB, from Debian's and Python's packages) and runs tests/windows. Each failure
of a test there is laid to Wine, with the reason, or to Waggle. What Wine cannot show is said in tests/windows/rig.py.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import figures_file

sys.path.insert(0, str(figures_file.ROOT / "tests/windows"))

from reasons import OURS, reason

PICTURES = Path(__file__).with_suffix("")
FAILED = "failed "


def main() -> int:
    figures_file.require_clean_tree()
    figures = json.loads(Path(sys.argv[1]).read_text()) if sys.argv[1:] else measured()
    failures = {name: reason(name) or OURS for name in figures if name.startswith(FAILED)}
    PICTURES.mkdir(exist_ok=True)
    for picture in (figures_file.ROOT / "build/windows").glob("*.png"):
        shutil.copyfile(picture, PICTURES / picture.name)
    commit = sys.argv[2] if sys.argv[2:] else ""
    figures_file.write(
        Path(__file__), figures | failures | {"failures_of_waggle": list(failures.values()).count(OURS)}, commit=commit
    )
    return 0


def measured() -> dict[str, float | str]:
    """What the tests measured."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "figures.json")
        only = ["-m", "windows", "tests/windows", "--figures", str(output)]
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *only]
        environment = {**os.environ, "PYTHONPATH": str(figures_file.ROOT / "app")}
        subprocess.call(command, cwd=figures_file.ROOT, env=environment)
        return dict(json.loads(output.read_text()))


if __name__ == "__main__":
    sys.exit(main())
