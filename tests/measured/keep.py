"""What every measuring command does: refuse a tree that no commit names, and write figures down with where they are from."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def require_clean() -> None:
    """End here where files differ from the commit that would be named; figures themselves may."""
    if dirty := said("git", "status", "--porcelain", "--", ":!tests/measured").strip():
        sys.exit(f"The tree has changes that no commit names:\n{dirty}")


def write(script: Path, figures: dict[str, object], *, commit: str = "", machine: str = "") -> None:
    """NAME.json beside NAME.py, and on the screen; of this commit and computer where no others are named."""
    here = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    content = {
        "command": f"python3 {script.relative_to(ROOT)}",
        "commit": commit or said("git", "rev-parse", "HEAD").strip(),
        "machine": machine or here,
        "figures": figures,
    }
    script.with_suffix(".json").write_text(json.dumps(content, indent=2) + "\n")
    print(script.with_suffix(".json").read_text())


def said(*command: str) -> str:
    return subprocess.check_output(command, cwd=ROOT, text=True)
