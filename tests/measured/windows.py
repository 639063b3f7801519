#!/usr/bin/env python3
"""Run Waggle on Windows' own Python under Wine, and write windows.json beside this file and pictures into windows/.

    sudo WAGGLE_WINDOWS_RIG=FOLDER .venv/bin/python tests/measured/windows.py

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

PICTURES = Path(__file__).with_suffix("")


def main() -> int:
    figures_file.require_clean_tree()
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "figures.json")
        only = ["-m", "windows", "tests/windows", "--figures", str(output)]
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *only]
        environment = {**os.environ, "PYTHONPATH": str(figures_file.ROOT / "app")}
        code = subprocess.call([*command, *sys.argv[1:]], cwd=figures_file.ROOT, env=environment)
        figures = json.loads(output.read_text()) if output.exists() else {}
    for picture in (figures_file.ROOT / "build/windows").glob("*.png"):
        shutil.copyfile(picture, PICTURES / picture.name)
    figures_file.write(Path(__file__), {"rig_rc": code, **figures})
    return code


if __name__ == "__main__":
    sys.exit(main())
