"""pycosat, which needs a compiler and no charter, may be missing: on Windows no installation has it."""

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

import app_contents
import locked
import pytest
from packaging.requirements import Requirement

BLOCKED = "import sys; sys.modules['pycosat'] = None\n"  # makes `import pycosat` fail, as where it is not installed
JUDGE = """
import app_contents
from waggle.tasks.sandbox import messages, verifier_process
datasets = tuple(messages.DatasetLevels(name, ({},)) for name in app_contents.datasets())
bench = verifier_process.ready(datasets)
from waggle.tasks.questions import QuestionKey
key = QuestionKey("knights_knaves", 3, 0)
print(bench.judge(key, f"<answer>{bench.answer(key)}</answer>", True).reward)
"""
SOLVE = """
from waggle.tasks.sandbox import reasoning_gym_patches
reasoning_gym_patches.stub_pycosat()
import reasoning_gym
reasoning_gym.create_dataset("zebra_puzzles", seed=1, size=1)[0]
"""


def python(code):
    places = os.pathsep.join(map(str, (app_contents.SOURCE, app_contents.ROOT / "packaging")))
    environment = {**os.environ, "PYTHONPATH": places, "PYTHONHASHSEED": "0"}
    return subprocess.run([sys.executable, "-c", BLOCKED + code], capture_output=True, text=True, env=environment, check=False)


def test_every_dataset_that_a_charter_may_name_is_generated_and_judged_without_it():
    judging = python(JUDGE)
    assert not judging.returncode, judging.stderr
    assert judging.stdout.endswith("1.0\n"), "reasoning-gym prints dots"


def test_an_installer_that_is_built_without_it_has_every_dataset():
    listing = python("import app_contents; print(*app_contents.dataset_modules())")
    assert not listing.returncode, listing.stderr
    assert {"reasoning_gym.logic.knights_knaves", "reasoning_gym.arithmetic.basic_arithmetic"} <= set(listing.stdout.split())


def test_only_what_solves_with_it_fails_and_says_why():
    solving = python(SOLVE)
    assert "NotImplementedError: pycosat is not installed" in solving.stderr


def test_where_it_is_installed_it_is_used():
    pytest.importorskip("pycosat")
    code = "from waggle.tasks.sandbox import reasoning_gym_patches as patches; patches.stub_pycosat()"
    code += "\nimport pycosat; print(pycosat.solve([[1]]))"
    output = subprocess.check_output([sys.executable, "-c", code], text=True, env={"PYTHONPATH": str(app_contents.SOURCE)})
    assert json.loads(output) == [1]


def test_on_windows_reasoning_gym_comes_without_it_but_with_all_else_that_it_needs():
    project = tomllib.loads((app_contents.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    of_windows = {
        Requirement(each).name.lower(): Requirement(each).specifier
        for each in project["dependencies"]
        if (marker := Requirement(each).marker) is None or marker.evaluate(locked.WINDOWS.environment("3.11"))
    }
    upstream = [Requirement(each) for each in requires("reasoning-gym") or []]
    needed = {each.name.lower(): each.specifier for each in upstream if each.marker is None}
    assert needed.pop("pycosat")
    assert {name: of_windows.get(name) for name in needed} == needed
    assert "reasoning-gym" not in of_windows, "pip would compile pycosat"
    dev = Path(app_contents.ROOT / "packaging/dev.py").read_text(encoding="utf-8")
    assert re.search(r'if WINDOWS:.*\n\s+pip\("install", "--no-deps", "reasoning-gym"\)', dev)
