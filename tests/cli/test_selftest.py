"""The self-test plays three rounds, and says why it could not."""

import os
import sys
from pathlib import Path

from waggle.cli import main, selftest
from waggle.core import paths
from waggle.engine.storage.pause_request import PauseRequest
from waggle.protocol.schedule import Wishes

QUICK = [
    part
    for setting in ("computer.threads=1", "computer.priority=normal", "learning.held_out_questions=1")
    for part in ("--set", setting)
]


def test_three_rounds_alone_are_played_by_an_engine_of_its_own(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(main.__file__).parents[2]))
    (tmp_path / "settings.toml").write_text(f"[when]\nidle_minutes = 240\nweek = {['.' * 24] * 7}\n")  # rules that would hold it
    assert main.main(["selftest", "--home", str(tmp_path), *QUICK]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "parameters" in lines[0]
    rounds = [line.split(":")[0] for line in lines[1:]]
    assert rounds == [f"Round {number}" for number in range(1, len(rounds) + 1)]
    assert len(rounds) >= selftest.ROUNDS == 3, "one more may end before the engine hears that it is to stop"
    assert paths.Home(tmp_path).model.checkpoints.exists()


def test_an_engine_that_fails_says_why_and_the_exit_code_says_so(tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(main.__file__).parents[2]))
    assert main.main(["selftest", "--home", str(tmp_path), "--set", "model.folder=/nowhere"]) == 1
    output = capfd.readouterr()
    assert f"There is no model in {Path('/nowhere')}" in output.err
    assert "Round 1" not in output.out


def test_a_trial_that_something_else_holds_back_ends_and_says_what(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(main.__file__).parents[2]))
    PauseRequest(tmp_path / "asked.json").save(Wishes(paused=True))
    assert main.main(["selftest", "--home", str(tmp_path), *QUICK]) == 1
    assert "waggle: Paused.\n        Nothing was lost. Continues when you resume." in capsys.readouterr().err


def test_an_installed_app_has_an_executable_for_each_process(monkeypatch):
    assert paths.module_command("waggle") == paths.window_command() == [sys.executable, "-P", "-m", "waggle"]
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", os.path.join("opt", "Waggle.exe"))
    monkeypatch.setattr(sys, "platform", "win32")
    assert paths.module_command("waggle") == [os.path.join("opt", "waggle-console.exe")]
    assert paths.window_command() == [os.path.join("opt", "Waggle.exe")], "the other one would open a console as well"
    assert paths.module_command("waggle.models.inspection.process") == [
        os.path.join("opt", "waggle-console.exe"),
        "inspect-model",
    ]
    assert paths.module_command("waggle.models.gguf.process") == [os.path.join("opt", "waggle-console.exe"), "read-gguf"]
    assert paths.module_command("waggle.tasks.sandbox.verifier_process") == [os.path.join("opt", "waggle-verifier.exe")]
    assert paths.module_command("waggle.tasks.sandbox.template_process") == [
        os.path.join("opt", "waggle-verifier.exe"),
        "template",
    ]
