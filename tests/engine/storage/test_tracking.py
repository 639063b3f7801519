"""Figures of rounds for TensorBoard and W&B, written and read back by their own libraries."""

import json
import os
import struct
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

import waggle
from protocol.text.test_status_text import READY
from waggle.core import research_library
from waggle.core.settings import TrackingSettings
from waggle.engine.storage.tracking import round_tracker
from waggle.engine.storage.tracking.figures import round_figures, run_name, score_figures
from waggle.engine.storage.tracking.round_tracker import RoundTracker, tools_of
from waggle.protocol import events, json_lines

BLOCK, WHOLE, LAST = 32_768, 1, 4  # of the log format
RUN = "owner-a-model_Ours_01234567"
READY_NOW = replace(READY, model="owner/a model\u202e", swarm="../Ours", recipe="0123456789abcdef", run=RUN)


def summary(number: int) -> events.RoundSummary:
    metrics = events.Metrics(loss=-0.25, entropy=1.5, external_share=0.5, learning_rate=2e-5)
    return events.RoundSummary(
        round=number, at=1e9 + number, reward=number / 10, solved=0.25, seconds=2.0, tokens=500, external=3, metrics=metrics,
        by_specialty={"Tiny programs": 0.5},
    )  # fmt: skip


def play(tracker: RoundTracker) -> None:
    """Three rounds and a score, as the engine publishes them."""
    score = events.HeldOutScore(round=2, at=1e9, right=3, total=30)
    rounds = (events.RoundCompleted(summary=summary(number)) for number in range(3))
    for event in (READY_NOW, *rounds, events.HeldOutMeasured(score=score), events.GroupsShared(round=1, groups=1, bytes=1)):
        tracker(json_lines.line(event))
    tracker.close()


def test_a_run_has_a_name_that_is_one_folder():
    facts = (READY_NOW.model, READY_NOW.swarm)
    assert run_name("", *facts, READY_NOW.recipe) == RUN
    assert run_name("", *facts, "9") != RUN, "another recipe is another run"
    assert run_name("", "..", "", READY_NOW.recipe) == "unnamed_unnamed_01234567"
    assert run_name("My baseline/2", *facts, READY_NOW.recipe) == "My-baseline-2"
    assert run_name("..", *facts, READY_NOW.recipe) == RUN


def test_only_what_is_known_is_a_figure():
    figures = round_figures(summary(3))
    assert figures["reward/mean"] == pytest.approx(0.3)
    assert (figures["speed/tokens_per_second"], figures["reward_by_specialty/Tiny-programs"]) == (250.0, 0.5)
    assert "reward/of_others" not in figures
    assert "groups/learned_from" not in figures
    assert score_figures(events.HeldOutScore(round=1, at=0.0, right=0, total=0)) == {"held_out/right": 0.0, "held_out/total": 0.0}


def test_a_library_that_is_not_installed_costs_a_warning_only(tmp_path, monkeypatch):
    def refuse(name: str):
        raise ImportError(name)

    monkeypatch.setattr("waggle.engine.storage.tracking.tensorboard_files.import_module", refuse)
    warned: list[events.Warned] = []
    assert tools_of(TrackingSettings(tensorboard=str(tmp_path)), warned.append) == []
    assert [each.title for each in warned] == ["TensorBoard is not installed, so it gets no figures."]
    assert warned[0].advice == f'Training continues. Install it with: {sys.executable} -m pip install "tensorboard>=2.20"'
    monkeypatch.setattr("sys.frozen", True, raising=False)
    tools_of(TrackingSettings(tensorboard=str(tmp_path)), warned.append)
    assert "Run Waggle from its source" in warned[1].advice
    assert tools_of(TrackingSettings(), warned.append) == []


def test_the_libraries_that_are_advised_are_those_of_the_project():
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert sorted(project["optional-dependencies"]["research"]) == sorted(research_library.REQUIREMENTS.values())


def test_a_tool_that_fails_gets_no_more_figures_and_the_others_go_on():
    class Tool:
        def __init__(self, *, fails: bool) -> None:
            self.steps, self._fails = list[int](), fails

        def begin(self, run, facts) -> None:
            pass

        def log(self, step, at, figures) -> None:
            self.steps.append(step)
            if self._fails:
                raise OSError(28, "No space left on device")

        def close(self) -> None:
            self.steps.append(-1)

    broken, whole = Tool(fails=True), Tool(fails=False)
    warned: list[events.Warned] = []
    play(RoundTracker([broken, whole], warned.append))
    assert broken.steps == [0]
    assert whole.steps == [0, 1, 2, 2, -1]
    assert [each.title for each in warned] == ["The figures of rounds cannot be written any more: No space left on device."]


def test_tensorboard_reads_back_every_round(tmp_path):
    pytest.importorskip("tensorboard", reason="not part of Waggle (core/research_library.py)")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for _ in range(2):  # the second start of an engine adds a file to the same run
        play(RoundTracker(tools_of(TrackingSettings(tensorboard=str(tmp_path)), pytest.fail), pytest.fail))
    assert [path.name for path in tmp_path.iterdir()] == [RUN]
    read = EventAccumulator(str(tmp_path / RUN)).Reload()
    rewards = read.Scalars("reward/mean")
    assert {(each.step, round(each.value, 6)) for each in rewards} == {(0, 0.0), (1, 0.1), (2, 0.2)}
    assert rewards[0].wall_time == 1e9
    assert [round(each.value, 6) for each in read.Scalars("held_out/share")][-1] == 0.1
    assert "learning/external_share" in read.Tags()["scalars"]


def test_wandb_reads_back_every_round_of_an_offline_folder(tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="not part of Waggle (core/research_library.py)")
    from wandb.proto import wandb_internal_pb2

    monkeypatch.setattr(round_tracker, "CLOSE_SECONDS", 120.0)
    monkeypatch.setenv("HOME", str(tmp_path))
    began = time.time()
    play(RoundTracker(tools_of(TrackingSettings(wandb=str(tmp_path / "runs")), pytest.fail), pytest.fail))
    (file,) = (tmp_path / "runs").glob("wandb/offline-run-*/*.wandb")
    assert file.stat().st_mtime >= began - 5
    rows: list[dict[str, object]] = []
    for data in records(file.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        if record.HasField("history"):
            rows.append({item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item})
    rewards = [(row["round"], row["reward/mean"]) for row in rows if "reward/mean" in row]
    assert rewards == [(0, 0.0), (1, 0.1), (2, 0.2)]
    assert [row["held_out/share"] for row in rows if "held_out/share" in row] == [0.1]


def records(content: bytes) -> Iterator[bytes]:
    """The records of a W&B file: a head of seven bytes, then the log format of LevelDB in blocks of 32 KiB."""
    assert content[:4] == b":W&B"
    record, at = b"", 7
    while at + 7 <= len(content):
        if BLOCK - at % BLOCK < 7:
            at += BLOCK - at % BLOCK
            continue
        length, kind = struct.unpack_from("<HB", content, at + 4)
        record += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (WHOLE, LAST):
            yield record
            record = b""


def test_trackio_reads_back_every_round_and_no_server_is_called(tmp_path, monkeypatch):
    pytest.importorskip("trackio", reason="not part of Waggle (core/research_library.py)")
    monkeypatch.setenv("TRACKIO_SERVER_URL", "http://127.0.0.1:9/?write_token=x")
    code = """
import sys
sys.addaudithook(lambda name, values: sys.exit(f"{name} {values}") if name in ("socket.connect", "socket.getaddrinfo") else None)
import pytest
from engine.storage.test_tracking import play
from waggle.core import research_library
from waggle.core.settings import TrackingSettings
from waggle.engine.storage.tracking.round_tracker import RoundTracker, tools_of
play(RoundTracker(tools_of(TrackingSettings(trackio=sys.argv[1]), pytest.fail), pytest.fail))
from trackio.sqlite_storage import SQLiteStorage
import json
import os
(run,) = SQLiteStorage.get_runs("waggle")
print(json.dumps([run, SQLiteStorage.get_logs("waggle", run)]))
"""
    folders = (Path(waggle.__file__).parents[1], Path(__file__).parents[2], *sys.path)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(folder) for folder in folders if folder)}
    command = [sys.executable, "-c", code, str(tmp_path)]
    played = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert played.returncode == 0, played.stderr
    run, rows = json.loads(played.stdout.splitlines()[-1])
    assert run == RUN
    assert [row["step"] for row in rows if "reward/mean" in row] == [0, 1, 2]
    assert [round(row["reward/mean"], 6) for row in rows if "reward/mean" in row] == [0.0, 0.1, 0.2]
    assert [round(row["held_out/share"], 6) for row in rows if "held_out/share" in row] == [0.1]
    assert list(tmp_path.glob("*.db")), "it is stored in the folder of the setting"
