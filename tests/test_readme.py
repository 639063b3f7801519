"""Check that the README matches the code."""

import gc
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def without_collections() -> Iterator[None]:
    """Disable garbage collection: in `ast.parse`, Python 3.11 mistakes a finalizer for its own recursion (SystemError)."""
    enabled = gc.isenabled()
    gc.disable()
    yield
    if enabled:
        gc.enable()


def test_the_readme_is_short_and_begins_with_what_a_newcomer_asks():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) < 150
    assert "dev.py run " in (first := "\n".join(lines[:40]))
    assert "dev.py test" in first
    assert "## Learn with a friend" in first


def test_every_pattern_is_held_to_the_whole_of_a_text():
    """A $ also matches before a final line break, and would accept a peer's hash or version that ends with one."""
    ends = {
        pattern[-2:]: path
        for path in (ROOT / "app").rglob("*.py")
        for pattern in re.findall(r'\bpattern=r?"([^"]+)"', path.read_text(encoding="utf-8"))
    }
    assert ends.keys() == {r"\Z"}, ends


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="Only a clone knows which files are kept.")
def test_the_top_level_holds_nothing_that_a_command_left_there():
    listing = subprocess.run(["git", "ls-tree", "--name-only", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True)
    folders = {".ci", ".github", "app", "docs", "packaging", "resources", "tests"}
    pages = {"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md"}
    settings = {".editorconfig", ".gitattributes", ".gitignore", ".pre-commit-config.yaml", "pyproject.toml"}
    assert set(listing.stdout.split()) == folders | pages | settings


def test_no_file_of_the_repository_is_large():
    assert [path for path in (ROOT / "resources").rglob("*") if path.is_file() and path.stat().st_size > 6_000_000] == []
