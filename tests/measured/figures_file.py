"""For every measuring command: refuse a tree with uncommitted changes, and write figures with their origin."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def require_clean_tree() -> None:
    """Exit if files differ from the commit; only files in tests/measured may."""
    if dirty := output_of("git", "status", "--porcelain", "--", ":!tests/measured").strip():
        sys.exit(f"Commit these changes first, because figures name the commit they were measured at:\n{dirty}")


def write(script: Path, figures: dict[str, object], *, commit: str = "", machine: str = "") -> None:
    """Write NAME.json beside NAME.py, and print it. Commit and machine default to the current ones."""
    here = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    content = {
        "command": f"python3 {script.relative_to(ROOT)}",
        "commit": commit or output_of("git", "rev-parse", "HEAD").strip(),
        "machine": machine or here,
        "figures": figures,
    }
    script.with_suffix(".json").write_text(json.dumps(content, indent=2) + "\n")
    print(script.with_suffix(".json").read_text())


def source_commit(revision: str = "HEAD") -> str:
    """The last commit that changed anything outside tests/measured: recording a result does not change the source."""
    return output_of("git", "log", "-1", "--format=%H", revision, "--", ".", ":!tests/measured").strip()


def output_of(*command: str) -> str:
    return subprocess.check_output(command, cwd=ROOT, text=True)
