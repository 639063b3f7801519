"""Test how torture detects losses, without a kill; `waggle-lab torture` does the killing."""

import argparse
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

import waggle
from waggle.core import paths
from waggle.core.errors import LabError
from waggle.engine.storage.history import History
from waggle.models.backend import open_policy
from waggle.models.storage import checkpoint, training_journal
from waggle.models.storage.checkpoint import CheckpointState
from waggle.rl.batch import StepParams, TrainingGroup
from waggle_lab.reliability import pause_stress, torture
from waggle_lab.reliability.pause_stress import CalmResults, MeasuredPause, Soak
from waggle_lab.reliability.target_process import TargetProcess, database_is_whole
from waggle_lab.reliability.torture import Kill


def test_figures_are_counted_over_all_kills_of_a_folder(tmp_path):
    kills = (Kill(target="engine", phase="contributing", rounds_lost=2, replayed=3), Kill(target="p2pd", phase="preparing"))
    (tmp_path / "kills.jsonl").write_bytes(b"".join(msgspec.json.encode(kill) + b"\n" for kill in kills))
    pauses = [MeasuredPause(stage="learn", ms=3.0), MeasuredPause(stage="answer", ms=1.0), MeasuredPause(stage="learn", ms=8.0)]
    (tmp_path / "calm.json").write_bytes(msgspec.json.encode(CalmResults(pauses=pauses)))
    figures = torture.summary(tmp_path)
    assert (figures["kills"], figures["rounds_lost_max"], figures["states_learned_again"]) == (2, 2, 3)
    assert (figures["pause_ms_median"], figures["pause_ms_worst"]) == (3, 8)
    assert (figures["pause_ms_by_stage"]["learn"], figures["pause_ms_by_stage"]["judge"]) == ((6, 8), (None, None))
    assert "soak_rounds" not in figures
    assert figures["kills_by_target"] == {"engine": 1, "p2pd": 1, "verifier": 0, "window": 0}
    assert figures["resume_bit_exact"]
    assert [torture.lost_nothing(kill) for kill in kills] == [False, True]


def test_what_was_not_done_has_no_figures(tmp_path):
    assert torture.summary(tmp_path) == {}
    pause_stress.write_results(tmp_path, CalmResults(soak=Soak(rounds=90, hours=8.01, growth_percent={"engine": 0.04})))
    assert torture.summary(tmp_path) == {
        "soak_rounds": 90, "soak_hours_worth": 8.0, "memory_growth_percent": {"engine": 0.0}
    }  # fmt: skip


def test_growth_leaves_the_warm_up_out_and_says_nothing_of_few_looks():
    assert pause_stress.growth([1] * 5 + [100] * 10 + [110] * 5) == pytest.approx(10.0)
    assert pause_stress.growth([1] * 19) is None


def test_a_soak_too_short_to_say_anything_is_kept_and_read_again(tmp_path):
    pause_stress.write_results(
        tmp_path, CalmResults(soak=Soak(rounds=3, hours=0.1, growth_percent={"engine": pause_stress.growth([1]), "p2pd": 1.25}))
    )
    assert pause_stress.read_results(tmp_path).soak.growth_percent == {"engine": None, "p2pd": 1.25}
    assert torture.summary(tmp_path)["memory_growth_percent"] == {"engine": None, "p2pd": 1.2}
    (tmp_path / "calm.json").write_bytes(b'{"pauses":[{"sta')
    with pytest.raises(LabError, match="not a result of torture"):
        pause_stress.read_results(tmp_path)


def test_a_damaged_database_is_noticed_and_looking_changes_nothing(tmp_path):
    home = paths.Home(tmp_path)
    History(home.model.history).close()
    before = home.model.history.read_bytes()
    assert database_is_whole(home)
    assert home.model.history.read_bytes() == before
    content = bytearray(before)
    content[4096:] = b"\xff" * (len(content) - 4096)
    home.model.history.write_bytes(content)
    assert not database_is_whole(home)
    with pytest.raises(sqlite3.DatabaseError):
        sqlite3.connect(home.model.history).execute("select * from rounds").fetchall()


def test_a_saved_state_is_learned_again_from_the_one_before_to_the_bit_and_one_that_differs_is_noticed(tmp_path):
    home = paths.Home(tmp_path).prepare()
    policy = open_policy(paths.starter(), device="cpu", threads=1).policy
    base = checkpoint.base_of(paths.starter())
    for number in (1, 2, 3):
        noise = np.random.default_rng(number)
        batch = TrainingGroup(
            prompt=noise.integers(5, 200, 9).astype(np.int32), completions=(noise.integers(5, 200, 6).astype(np.int32),),
            advantage=np.ones(6, np.float32), weight=np.full(6, 0.2, np.float32),
        )  # fmt: skip
        params = StepParams(learning_rate=1e-3)
        policy.step([batch], params)
        saved = CheckpointState(round=number, step=policy.steps, epoch=1, charter="c", base=base)
        if number > 1:
            training_journal.append(home.model.checkpoints, 1, training_journal.entry_of(saved, [([batch], params)]))
        if number in (1, 3):
            checkpoint.save(home.model.checkpoints, policy, saved)
    assert torture.check_replay(home) == (1, True)
    policy.step([batch], params)
    checkpoint.save(home.model.checkpoints, policy, saved)
    assert torture.check_replay(home) == (1, False)
    (home.model.checkpoints / "r00000001" / "state.json").unlink()
    assert torture.check_replay(home) == (0, False)


def test_of_a_kill_only_what_is_set_aside_after_it_is_lost(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(waggle.__file__).parents[1]))
    node = TargetProcess(tmp_path / "node", ("swarm.solo=true", *torture.SETTINGS), windowed=False)
    home = node.home.prepare()
    policy = open_policy(paths.starter(), device="cpu", threads=1).policy
    base = checkpoint.base_of(paths.starter())
    for number in (4, 5):
        checkpoint.save(home.model.checkpoints, policy, CheckpointState(round=number, step=0, epoch=1, charter="c", base=base))
    (home.model.checkpoints / "r00000005/model.safetensors").write_bytes(b"damaged")
    for earlier in ("damaged-r00000002", "damaged-r00000005"):
        (home.model.checkpoints / earlier).mkdir()
    (home.root / "history.damaged").touch()
    node.process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)  # to be killed
    kill = torture._kill(node, "engine", random.Random(2))
    node.stop()
    assert (kill.checkpoints_lost, kill.databases_corrupted) == (1, 0)


def test_ctrl_c_while_one_node_is_awaited_leaves_no_other_behind(tmp_path, monkeypatch):
    nodes: list[str] = []

    class Slow:
        def __init__(self, home: Path, settings: tuple[str, ...], *, windowed: bool) -> None:
            self._name = home.name

        def stop(self) -> None:
            nodes.append(self._name)
            raise KeyboardInterrupt

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(torture, "TargetProcess", Slow)
    monkeypatch.setattr(torture, "_play", interrupted)
    with pytest.raises(KeyboardInterrupt):
        torture._torture(argparse.Namespace(), tmp_path, ())
    assert sorted(nodes) == ["first", "second"]
