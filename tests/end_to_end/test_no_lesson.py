"""Test that an engine that learns nothing says why, and that a model without finite numbers is refused by name."""

import shutil

import numpy as np

from end_to_end.programs import Engine, running
from waggle.cli import main
from waggle.core import paths
from waggle.models.shared import weight_files
from waggle.protocol import events
from waggle.protocol.state import RECALLED
from waggle.protocol.text.lesson_diagnosis import diagnosis

ALONE = ("swarm.solo=true", "learning.questions=1", "learning.local=1", "learning.group_size=2")
TOO_SHORT = "learning.max_new_tokens=2"


def test_after_twenty_rounds_without_a_lesson_an_engine_says_why_also_after_a_restart(tmp_path, capsys):
    with running(Engine(tmp_path, *ALONE, TOO_SHORT)) as engine:
        engine.wait_round(RECALLED - 1, 120)
        why = diagnosis(engine.state())
        assert why.reason == "too_long"
        assert main.main(["ctl", "status", "--home", str(tmp_path)]) == 0
        assert why.says in (output := capsys.readouterr().out)
        assert "learning.max_new_tokens" in output
        assert all(event.left_out == "no_lesson" for event in engine.all_events if isinstance(event, events.PolicyUpdated))
        assert engine.end() == 0
    with running(Engine(tmp_path, *ALONE, TOO_SHORT)) as engine:
        engine.wait(events.RoundsRecalled, 60)
        assert diagnosis(engine.state()) == why, "a computer that contributes an hour a day need not wait again"
        assert engine.end() == 0
    with running(Engine(tmp_path, *ALONE, "learning.max_new_tokens=24")) as engine:
        engine.wait(events.RoundsRecalled, 60)
        assert diagnosis(engine.state()) is None, "what was changed has yet to show"
        assert engine.end() == 0


def test_a_model_whose_numbers_are_not_finite_is_refused(tmp_path):
    folder = shutil.copytree(paths.starter(), tmp_path / "model")
    arrays = {name: array.copy() for name, array in weight_files.load(folder / weight_files.WEIGHTS).items()}
    arrays["model.norm.weight"][0] = np.nan
    weight_files.save(arrays, folder / weight_files.WEIGHTS)
    with running(Engine(tmp_path / "home", *ALONE, f"model.folder={folder}")) as engine:
        failed = engine.wait(events.EngineFailed, 60)
        assert failed.title == "The model's answers are no numbers."
        assert "choose another model" in failed.advice
