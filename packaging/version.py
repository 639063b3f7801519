"""The version: that of the source if this commit is tagged with it, otherwise a development version."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def of_source() -> str:
    """`waggle.__version__`, read without an import."""
    for node in ast.parse((ROOT / "app/waggle/__init__.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign):
            return str(ast.literal_eval(node.value))
    raise LookupError("app/waggle/__init__.py has no __version__")


def of_this_tree() -> str:
    """1.2.3 at the tag v1.2.3, 1.2.3.dev45 before it; `WAGGLE_VERSION` overrides both."""
    if chosen := os.environ.get("WAGGLE_VERSION"):
        return chosen
    try:
        tags = output_of("git", "tag", "--points-at", "HEAD", "--list", "v*").split()
        commits = output_of("git", "rev-list", "--count", "HEAD").strip()
    except (OSError, subprocess.CalledProcessError):  # an archive of the source, without its history
        return of_source()
    return named(of_source(), tags, commits)


def named(source: str, tags: list[str], commits: str) -> str:
    """The version for these tags of the commit; exits if a tag differs from the version of the source."""
    if not tags:
        return f"{source}.dev{commits}"
    if f"v{source}" not in tags:
        sys.exit(f"This commit is tagged {' '.join(tags)}, but app/waggle/__init__.py says {source}.")
    return source


def changes() -> str:
    """The section of the changelog for the version of the source."""
    section = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition(f"## {of_source()}\n")[2]
    return section.partition("\n## ")[0].strip()


def for_debian(version: str) -> str:
    """Debian sorts a tilde before the end, so that a development version is older than its release."""
    return re.sub(r"\.dev", "~dev", version)


def output_of(*command: str) -> str:
    return subprocess.check_output(command, cwd=ROOT, text=True, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    print(changes() if "--changes" in sys.argv else of_this_tree())
