"""A kind of question needs one file: that of docs/adding/, dropped into a copy of the product."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import waggle
from waggle.core import paths

PRODUCT = Path(waggle.__file__).parent
GUIDE = PRODUCT.parent.parent / "docs/adding/question-kind.md"
FILE = re.compile(r"^`app/(?P<path>waggle/\S+\.py)`:\n+```python\n(?P<source>.*?)^```$", re.MULTILINE | re.DOTALL)
CREATE_SWARM = Path(__file__).with_name("create_swarm.py")  # a file, so that type checks and renames reach its imports


def run(checkout: Path, *arguments: str) -> None:
    environment = {"PYTHONPATH": str(checkout / "app"), "PATH": ""}
    if sys.platform == "win32":
        environment["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
    finished = subprocess.run(
        [sys.executable, str(CREATE_SWARM), *arguments],
        cwd=checkout, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr


def test_the_grader_of_the_documentation_judges_answers_and_is_refused_where_it_is_missing(tmp_path: Path) -> None:
    shutil.copytree(PRODUCT, tmp_path / "app/waggle", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(paths.resources(), tmp_path / "resources")
    example = FILE.search(GUIDE.read_text("utf-8"))
    assert example is not None
    file = tmp_path / "app" / example["path"]
    file.write_text(example["source"], "utf-8")
    run(tmp_path)
    file.unlink()
    shutil.rmtree(file.parent / "__pycache__", ignore_errors=True)
    run(tmp_path, "refuse")
