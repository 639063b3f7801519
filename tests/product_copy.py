"""A copy of the product into which tests drop the files that a guide of docs/adding shows."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import waggle
from waggle.core import paths

PRODUCT = Path(waggle.__file__).parent
GUIDES = PRODUCT.parent.parent / "docs/adding"
FILE = re.compile(r"`app/(?P<path>waggle/\S+\.py)`:\n+```python\n(?P<source>.*?)^```$", re.MULTILINE | re.DOTALL)


def copy_product(root: Path) -> None:
    """Copy the product and its resources into a folder."""
    shutil.copytree(PRODUCT, root / "app/waggle", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(paths.resources(), root / "resources")


def drop_in(root: Path, guide: str) -> Path:
    """Write the first file that a guide shows in full into a copy of the product; returns its path."""
    file = FILE.search((GUIDES / guide).read_text("utf-8"))
    assert file is not None, f"{guide} shows no file"
    path = root / "app" / file["path"]
    path.parent.mkdir(exist_ok=True)
    path.write_text(file["source"], "utf-8")
    return path


def run_python(root: Path, *arguments: str, search: Path | None = None) -> str:
    """Run Python with a copy of the product, and with the modules of the folder `search` too; returns what it printed."""
    folders = [root / "app", *([search] if search else [])]
    finished = subprocess.run(
        [sys.executable, *arguments],
        cwd=root,
        env={"PYTHONPATH": os.pathsep.join(map(str, folders)), "QT_QPA_PLATFORM": "offscreen", "PATH": ""},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    return finished.stdout
