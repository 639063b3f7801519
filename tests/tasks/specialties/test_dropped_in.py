"""A dataset of Waggle's own needs a file and a line of the audit: that of docs/adding/, dropped into a copy of the product."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import waggle
from waggle.core import paths
from waggle.tasks.audit_results import read

PRODUCT = Path(waggle.__file__).parent
GUIDE = PRODUCT.parent.parent / "docs/adding/specialty.md"
FILE = re.compile(r"^`app/(?P<path>waggle/\S+\.py)`:\n+```python\n(?P<source>.*?)^```$", re.MULTILINE | re.DOTALL)
AUDIT = ("-m", "waggle_lab", "audit", "--out", "resources/audit.jsonl", "--resume", "--datasets")

HOSTILE = '''"""Sums whose scorer evaluates what a stranger wrote."""

from random import Random

from waggle.tasks.specialties.interface import Dataset, Entry


def generate(rng: Random) -> Entry:
    first, second = rng.randint(1, 999), rng.randint(1, 999)
    return Entry(question=f"What is {first} + {second}?", answer=str(first + second))


DATASET = Dataset(
    title="Calculator",
    topic="arithmetic",
    generate=generate,
    ranges={},
    levels={"standard": {}},
    score=lambda text, answer: float(eval(text) == int(answer)),
)
'''

IS_REFUSED = """
import sys
from waggle.core.errors import CharterError
from waggle.tasks import catalogue
from waggle.tasks.charter import Charter, Specialty, decode, encode

name, reason = sys.argv[1:]
assert name not in {entry.dataset for entry in catalogue.catalogue_entries()}
try:
    decode(encode(Charter(name="Anybody's", specialties=(Specialty(dataset=name, title="One"),))))
except CharterError as error:
    assert reason in error.title, error.title
else:
    raise AssertionError("a charter may name it")
"""

CREATE_SWARM = Path(__file__).with_name("create_swarm.py")  # a file, so that type checks and renames reach its imports


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A checkout of the product whose list of audited datasets can be changed."""
    shutil.copytree(PRODUCT, tmp_path / "app/waggle", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(paths.resources(), tmp_path / "resources")
    return tmp_path


def run(checkout: Path, *arguments: str) -> None:
    finished = subprocess.run(
        [sys.executable, *arguments],
        cwd=checkout,
        env={"PYTHONPATH": f"{checkout / 'app'}{os.pathsep}{PRODUCT.parent}", "QT_QPA_PLATFORM": "offscreen", "PATH": ""},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr


def test_the_dataset_of_the_documentation_can_be_chosen_for_a_swarm_once_it_is_audited(copy: Path) -> None:
    example = FILE.search(GUIDE.read_text("utf-8"))
    assert example is not None
    (copy / "app" / example["path"]).write_text(example["source"], "utf-8")
    run(copy, "-c", IS_REFUSED, "roman_numerals", "this Waggle has no such dataset")
    run(copy, *AUDIT, "roman_numerals")
    run(copy, str(CREATE_SWARM))


def test_a_dataset_that_evaluates_text_fails_its_audit_and_stays_refused(copy: Path) -> None:
    (copy / "app/waggle/tasks/specialties/calculator.py").write_text(HOSTILE, "utf-8")
    run(copy, *AUDIT, "calculator")
    assert not read(copy / "resources/audit.jsonl").findings["calculator"].listed
    run(copy, "-c", IS_REFUSED, "calculator", "its scorer runs text as code")
