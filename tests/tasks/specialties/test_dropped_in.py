"""A dataset of Waggle's own needs a file and a line of the audit: that of docs/adding/, dropped into a copy of the product."""

from pathlib import Path

import pytest

from product_copy import PRODUCT, copy_product, drop_in, run_python
from waggle.tasks.audit_results import read

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
    """A copy of the product whose list of audited datasets can be changed."""
    copy_product(tmp_path)
    return tmp_path


def run(copy: Path, *arguments: str) -> None:
    """Run Python with the copy, and with the laboratory, which the copy lacks."""
    run_python(copy, *arguments, search=PRODUCT.parent)


def test_the_dataset_of_the_documentation_can_be_chosen_for_a_swarm_once_it_is_audited(copy: Path) -> None:
    drop_in(copy, "specialty.md")
    run(copy, "-c", IS_REFUSED, "roman_numerals", "this Waggle has no such dataset")
    run(copy, *AUDIT, "roman_numerals")
    run(copy, str(CREATE_SWARM))


def test_a_dataset_that_evaluates_text_fails_its_audit_and_stays_refused(copy: Path) -> None:
    (copy / "app/waggle/tasks/specialties/calculator.py").write_text(HOSTILE, "utf-8")
    run(copy, *AUDIT, "calculator")
    assert not read(copy / "resources/audit.jsonl").findings["calculator"].listed
    run(copy, "-c", IS_REFUSED, "calculator", "its scorer runs text as code")
