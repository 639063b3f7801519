"""Test that an unfinished run is saved whole or not at all, and continued where that is right."""

import queue
import shutil
import threading
from pathlib import Path

import msgspec
import pytest

from full_disk import full_beyond
from killing import killed_after
from waggle.core import paths
from waggle.core.errors import LabError
from waggle.models.storage import checkpoint
from waggle.practice.results import Key, Run
from waggle.practice.trial import Trial
from waggle_lab.study import unfinished_runs, worker
from waggle_lab.study.plan import Part, Study
from waggle_lab.study.unfinished_runs import Source, UnfinishedRuns
from waggle_lab.study.worker import PreparedStudy

ALWAYS = 1e-9  # seconds between two saves
KEY = Key(setting="own", configuration="2/1:replay", seed=1, learning_rate=5e-4, rounds=4, split="dev")
SOURCE = Source("study", "c0ffee", {"torch": "1"})


@pytest.fixture(scope="module")
def study() -> Study:
    part = Part(setting="own", rounds=KEY.rounds, seeds={KEY.configuration: (1,)}, folders=(str(paths.starter()),))
    return Study(parts=(part,), split="dev", rates=(5e-4,), nodes=2, held_out=1, final_held_out=1, measure_every=2)


def prepared(study: Study, folder: Path, every: float = ALWAYS, source: Source = SOURCE) -> PreparedStudy:
    return PreparedStudy({"own": study.parts[0].folders * study.nodes}, UnfinishedRuns(folder, source), every)


@pytest.fixture
def reports(monkeypatch) -> queue.SimpleQueue:
    monkeypatch.setattr(worker, "_reports", queue.SimpleQueue())
    monkeypatch.setattr(worker, "_stop", threading.Event())
    return worker._reports


def reported_in(reports: queue.SimpleQueue) -> tuple[int, list[str]]:
    """The rounds that were reported, and the sentences."""
    everything = []
    while not reports.empty():
        everything.append(reports.get())
    return sum(each for each in everything if isinstance(each, int)), [each for each in everything if isinstance(each, str)]


def without_time(run: Run | None) -> Run:
    assert run is not None
    return msgspec.structs.replace(run, cpu_seconds=0.0)


@pytest.fixture(scope="module")
def straight(study, tmp_path_factory) -> Run:
    folder = tmp_path_factory.mktemp("straight")
    run = worker.play(study, KEY, prepared(study, folder, every=0))
    assert not list(folder.iterdir()), "0 minutes: no saves"
    return without_time(run)


@pytest.fixture
def stopped(study, tmp_path, reports) -> Path:
    """A study whose run was stopped after its first round."""
    worker._stop.set()
    assert worker.play(study, KEY, prepared(study, tmp_path, every=3600.0)) is None
    assert reported_in(reports) == (1, [])
    worker._stop.clear()
    return tmp_path


def save_in(folder: Path) -> Path:
    (save,) = folder.glob("unfinished-*/*")
    return save


def test_a_run_that_was_stopped_is_continued_from_that_round(study, stopped, straight, reports):
    assert save_in(stopped).name == "t00000001"
    unfinished = UnfinishedRuns(stopped, SOURCE)
    assert unfinished.rounds() == unfinished.rounds_of(KEY) == 1
    run = worker.play(study, KEY, prepared(study, stopped))
    assert without_time(run) == straight
    assert run.cpu_seconds > 0
    assert reported_in(reports) == (3, []), "the bar has the first round already"
    assert save_in(stopped).name == "t00000004", "one save for each run, until its result is kept"
    unfinished.remove(KEY)
    assert not list(stopped.iterdir())


@pytest.mark.parametrize(
    "name",
    [
        "run.json",
        "trial.msgpack",
        "log.safetensors",
        "SHA256SUMS",
        "node-1/r00000001/moments.safetensors",
        "node-0/r00000001/state.json",
    ],
)
def test_a_save_that_is_cut_short_is_named_and_its_run_begins_anew(name, study, stopped, straight, reports):
    file = save_in(stopped) / name
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    others = stopped / "runs.jsonl"
    others.write_bytes(b"finished\n")
    in_the_bar = UnfinishedRuns(stopped, SOURCE).rounds()
    UnfinishedRuns(stopped, SOURCE).require_continuable()
    assert without_time(worker.play(study, KEY, prepared(study, stopped))) == straight
    rounds, (sentence,) = reported_in(reports)
    assert in_the_bar + rounds == KEY.rounds, "the bar ends where it should"
    assert sentence.startswith("The save of 2/1:replay (own, rate 0.0005, seed 1) cannot be used: ")
    assert sentence.endswith("This run begins anew.")
    assert others.read_bytes() == b"finished\n"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (msgspec.structs.replace(SOURCE, commit="beef"), "by commit c0ffee, not by commit beef"),
        (msgspec.structs.replace(SOURCE, versions={"torch": "2"}), "by torch 1, not by torch 2"),
        (msgspec.structs.replace(SOURCE, study="other"), "by another study, not by this one"),
    ],
)
def test_a_save_of_another_source_is_refused_and_stays(source, words, stopped):
    with pytest.raises(LabError, match=words) as refused:
        UnfinishedRuns(stopped, source).require_continuable()
    assert str(stopped) in refused.value.advice
    assert save_in(stopped).is_dir()
    UnfinishedRuns(stopped, SOURCE).require_continuable()


def test_a_disk_without_room_is_told_once_and_the_run_is_played_on(study, tmp_path, straight, reports):
    with full_beyond(1 << 20):
        run = worker.play(study, KEY, prepared(study, tmp_path))
    assert without_time(run) == straight
    rounds, (sentence,) = reported_in(reports)
    assert rounds == KEY.rounds
    assert "cannot be saved after round 1: " in sentence
    assert sentence.endswith("It is played on; it has no save yet.")
    assert not list(tmp_path.glob("unfinished-*/*")), "nothing half written is left"


def test_where_two_saves_have_no_room_the_one_before_is_kept(study, stopped, straight, reports, monkeypatch):
    room = shutil.disk_usage(stopped)._replace(free=1_000_000)
    monkeypatch.setattr(unfinished_runs.shutil, "disk_usage", lambda _: room)
    assert without_time(worker.play(study, KEY, prepared(study, stopped))) == straight
    _, (sentence,) = reported_in(reports)
    assert "it takes 0.0 GB, and the disk has 0.0 GB free. It is played on; its save after round 1 stays." in sentence
    assert save_in(stopped).name == "t00000001"


def test_a_kill_at_any_moment_leaves_the_save_before_or_the_new_one(study, stopped, tmp_path_factory):
    charter = worker.charter_of("")
    setup = worker._setup(study, study.parts[0], KEY, study.parts[0].folders * 2, charter)
    trial = Trial(KEY, setup, worker._verifier(""))
    UnfinishedRuns(stopped, SOURCE).restore(KEY, trial)
    next(iter(trial.run()))
    saves, operations, was_killed = set(), 0, True
    while was_killed:
        copy = tmp_path_factory.mktemp("copy")
        shutil.copytree(stopped, copy, dirs_exist_ok=True)
        unfinished = UnfinishedRuns(copy, SOURCE)
        was_killed = killed_after(operations, lambda unfinished=unfinished: unfinished.save(KEY, trial, 1.0))
        newest = unfinished_runs._newest(next(copy.glob("unfinished-*")))
        assert newest is not None
        assert checkpoint.require_seal(newest) == {"run.json", "trial.msgpack", "log.safetensors"}
        for i in range(study.nodes):
            assert len(checkpoint.arrays(newest / f"node-{i}" / f"r{unfinished.rounds():08d}")) == 2
        saves.add(newest.name)
        shutil.rmtree(copy)
        operations += 1
    assert saves == {"t00000001", "t00000002"}
    assert operations > 20
