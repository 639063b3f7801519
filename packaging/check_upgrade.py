"""Checks that training survives an upgrade and a downgrade: `check_upgrade.py [REVISION]`.

REVISION (by default the tag before this commit) plays three rounds in a new home, this source plays three more, then REVISION
three more. Each must continue where the other stopped.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import version

ROUND = re.compile(r"^Round (\d+):", re.MULTILINE)


def main(arguments: list[str]) -> int:
    earlier = arguments[0] if arguments else version.output_of("git", "describe", "--tags", "--abbrev=0", "HEAD^").strip()
    with tempfile.TemporaryDirectory() as folder:
        other, home = Path(folder) / "earlier", Path(folder) / "home"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(other), earlier], cwd=version.ROOT, check=True)
        try:
            rounds = [number for source in (other, version.ROOT, other) for number in play_rounds(source, home)]
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(other)], cwd=version.ROOT, check=True)
    print(f"{earlier}, this, {earlier}: rounds {rounds}")
    return 0 if rounds == list(range(1, 10)) else 1


def play_rounds(source: Path, home: Path) -> list[int]:
    """Let the version in a folder play three rounds; returns their numbers."""
    environment = {**os.environ, "PYTHONPATH": str(source / "app")}
    command = [sys.executable, "-m", "waggle", "selftest", "--home", str(home)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        print(f"{source} failed:", done.stdout, sep="\n")
    return [int(number) for number in ROUND.findall(done.stdout)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
