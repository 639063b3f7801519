"""A file and a line of the audit are all that a dataset of Waggle's own needs: that of docs/adding/, dropped into a copy."""

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
assert name not in {entry.dataset for entry in catalogue.shipped()}
try:
    decode(encode(Charter(name="Anybody's", specialties=(Specialty(dataset=name, title="One"),))))
except CharterError as error:
    assert reason in error.title, error.title
else:
    raise AssertionError("a charter may name it")
"""

CREATE_SWARM = """
import asyncio, sys
from contextlib import closing
from pathlib import Path

from waggle.core import paths
from waggle.core.settings import Settings, SwarmSettings
from waggle.engine.services.swarms import SwarmService
from waggle.gui.application.main import application
from waggle.gui.pages.swarms.create_form import CreateSwarmForm
from waggle.gui.theme.theme import Theme
from waggle.protocol.commands import CreateSwarm, ListSwarms
from waggle.tasks import charter as charters
from waggle.tasks.questions import split_of
from waggle.tasks.rollout_group import Completion
from waggle.tasks.sandbox.exam import exam_of
from waggle.tasks.sandbox.verifier import Verifier

NAME = "roman_numerals"

def nothing(*_):
    raise AssertionError("no restart and no change of settings")

home = paths.Home(Path("home")).prepare()
service = SwarmService(home, Settings(swarm=SwarmSettings(host="127.0.0.1")), nothing, nothing)
(listed,) = asyncio.run(service.obey(ListSwarms(id="1")))
offer = next(offer for offer in listed.offers if offer.dataset == NAME)
assert list(offer.samples) == ["easy", "standard", "hard"] and "Roman numerals?" in offer.samples["easy"], offer

application()
theme = Theme("light")
form = CreateSwarmForm(theme)
form.show_offers(listed.offers)
assert "Roman numerals  \\u00b7  arithmetic" in [form._model.item(row).text() for row in range(form._model.rowCount())]

created, *_ = asyncio.run(service.obey(CreateSwarm(id="2", name="Rome", specialties=((NAME, "easy"), ("bf", "easy")))))
assert created.swarm.specialties[0].difficulty == "easy" and created.swarm.specialties[0].sample == offer.samples["easy"]
charter = charters.read(home.charters / f"{created.swarm.charter}.json", expected=bytes.fromhex(created.swarm.charter))

with closing(Verifier(charter)) as here, closing(Verifier(charter)) as peer:
    here.check_charter()
    peer.check_charter()
    seeds = [(NAME, (1 << 63) - 1 - number) for number in range(20)]
    questions, answers = here.questions(seeds), peer.answers(seeds)
    assert questions == peer.questions(seeds) and len({question.text for question in questions}) == 20
    texts = [f"<answer>{answer.lower()}</answer>" for answer in answers]
    judged = peer.judge((question, Completion(text=text, ended=True)) for question, text in zip(questions, texts))
    assert all(verdict.reward == 1 and verdict.exact for verdict in judged), judged
    wrong = peer.judge((question, Completion(text="<answer>MMM</answer>", ended=True)) for question in questions)
    assert all(verdict.reward == 0 for verdict in wrong), wrong
    reserved = here.held_out(NAME, "test", 8)
    assert len(reserved) == 8 and all(split_of(NAME, question.text) == "test" for question in reserved)
    assert sum(question.dataset == NAME for question in exam_of(here, charter, 7).questions) == 8
"""


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
    run(copy, "-c", CREATE_SWARM)


def test_a_dataset_that_evaluates_text_fails_its_audit_and_stays_refused(copy: Path) -> None:
    (copy / "app/waggle/tasks/specialties/calculator.py").write_text(HOSTILE, "utf-8")
    run(copy, *AUDIT, "calculator")
    assert not read(copy / "resources/audit.jsonl").findings["calculator"].listed
    run(copy, "-c", IS_REFUSED, "calculator", "its scorer runs text as code")
