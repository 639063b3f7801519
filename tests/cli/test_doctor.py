"""The doctor checks everything, and its report names no person, key or address."""

import argparse
import contextlib
import importlib.metadata
import importlib.util
import json
import os
import sqlite3
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest
from packaging.requirements import Requirement

import system_folders
from waggle.cli import doctor
from waggle.core import log, paths, settings
from waggle.core.errors import HistoryDamaged, HistoryError
from waggle.core.settings import ModelSettings
from waggle.engine.runtime import model_source
from waggle.engine.storage.history import History
from waggle.models.storage import checkpoint
from waggle.models.torch.policy import TorchPolicy
from waggle.network.identity import keys
from waggle.tasks import charter as charters
from waggle.tasks import shipped_swarms


def saved(round_: int, base: str) -> checkpoint.CheckpointState:
    return checkpoint.CheckpointState(round=round_, step=9, epoch=1, charter="ab" * 32, base=base, completions=768)


def run(home, capsys) -> tuple[int, str]:
    code = doctor.run(argparse.Namespace(home=home, json=False))
    return code, capsys.readouterr().out


@pytest.fixture
def unjudged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the verifier in tests that are about something else."""
    monkeypatch.setattr(doctor, "CHECKS", tuple(check for check in doctor.CHECKS if check is not doctor._judging))


@pytest.mark.usefixtures("unjudged")
def test_a_folder_that_is_not_there_yet_is_nothing_bad(tmp_path, capsys):
    code, output = run(tmp_path / "none", capsys)
    assert code == 0, output
    assert "the engine makes it" in output
    assert not (tmp_path / "none").exists()


@pytest.mark.usefixtures("unjudged")
@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("name = 'bees/tiny'", "model: bees/tiny is not on this computer yet. `waggle engine` downloads it."),
        ("folder = 'FOLDER/mine.gguf'", "model: mine.gguf was not converted yet. `waggle engine` converts it."),
    ],
)
def test_a_model_that_the_next_engine_gets_is_nothing_bad(tmp_path, capsys, monkeypatch, setting, says):
    monkeypatch.setenv(system_folders.CACHE, str(tmp_path / "cache"))
    (tmp_path / "mine.gguf").write_bytes(b"GGUF")
    (tmp_path / "settings.toml").write_text(f"[model]\n{setting.replace('FOLDER', tmp_path.as_posix())}\n")
    code, output = run(tmp_path, capsys)
    assert code == 0, output
    assert says in output


def test_everything_that_is_there_is_looked_at(tmp_path, capsys):
    home = paths.Home(tmp_path).prepare()
    mine = keys.load_or_create(home.identity)
    History(home.model.history).close()
    code, output = run(tmp_path, capsys)
    assert code == 0, output
    assert "identity: exists" in output
    assert keys.name_of(mine.peer_id) not in output
    assert "0 rounds, ok" in output
    assert "ok   judging: in a separate process, limited by " in output
    assert "[?]" in output or "[+]" in output, "the rules, each with its tick"


@pytest.mark.usefixtures("unjudged")
@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        (
            "settings.toml",
            b"[swarm\n",
            f"BAD  settings: The settings file cannot be read. HOME{os.sep}settings.toml is not valid TOML",
        ),
        ("identity.key", b"damaged", "BAD  identity: "),
        ("history.sqlite", b"damaged " * 1000, "BAD  history: damaged"),
        ("settings.toml", b"[model]\nfolder = '/nowhere'\n", f"BAD  model: There is no model in {Path('/nowhere')}"),
    ],
)
def test_what_is_broken_is_named_and_left_as_it_is(tmp_path, capsys, name, content, says):
    (tmp_path / name).write_bytes(content)
    code, output = run(tmp_path, capsys)
    assert (code, says in output) == (1, True), output
    assert (tmp_path / name).read_bytes() == content


@pytest.mark.usefixtures("unjudged")
def test_of_two_models_the_chosen_one_is_looked_at(tmp_path, capsys):
    home = paths.Home(tmp_path).prepare()
    (tmp_path / "models.json").write_bytes(msgspec.json.encode(ModelSettings(folder="/another")))
    policy = TorchPolicy(paths.starter())
    checkpoint.save(home.model.checkpoints, policy, saved(7, "another"))
    own = model_source.home_of(home, ModelSettings()).prepare()
    checkpoint.save(own.model.checkpoints, policy, saved(12, checkpoint.base_of(paths.starter())))
    (own.model.checkpoints / "damaged-r00000009").mkdir()
    (own.model.checkpoints / "damaged-journal-r00000009").touch()
    History(own.model.history).close()
    code, output = run(tmp_path, capsys)
    assert code == 0, output
    assert "saved state: 12 rounds in a whole checkpoint, 0 more in the journal; 1 damaged and set aside" in output
    assert "history: 0 rounds, ok" in output


@pytest.mark.skipif(sys.platform == "win32", reason="Windows calls what is below a file absent")
@pytest.mark.usefixtures("unjudged")
def test_a_home_that_is_no_folder_is_reported_on_to_the_end(tmp_path, capsys):
    (tmp_path / "file").touch()
    code, output = run(tmp_path / "file", capsys)
    assert (code, "BAD  engine: [Errno 20] Not a directory" in output) == (1, True), output


@pytest.mark.usefixtures("unjudged")
def test_a_history_that_is_locked_is_not_called_damaged(tmp_path, capsys):
    folder = tmp_path / "a#b%"
    home = paths.Home(folder).prepare()
    History(home.model.history).close()
    with contextlib.closing(sqlite3.connect(home.model.history)) as other:
        other.execute("pragma journal_mode = delete")
        other.execute("begin exclusive")
        code, output = run(folder, capsys)
    assert (code, "BAD  history: it cannot be read (database is locked)" in output) == (1, True), output
    assert "history: 0 rounds, ok" in run(folder, capsys)[1]


@pytest.mark.usefixtures("unjudged")
@pytest.mark.parametrize(
    ("code", "damaged"),
    [
        (sqlite3.SQLITE_IOERR_READ, True),
        (sqlite3.SQLITE_IOERR_SHORT_READ, True),
        (sqlite3.SQLITE_IOERR_WRITE, False),
        (sqlite3.SQLITE_CANTOPEN, False),
    ],
)
def test_of_a_failing_disk_the_doctor_says_what_the_engine_will_do(tmp_path, capsys, monkeypatch, code, damaged):
    home = paths.Home(tmp_path).prepare()
    History(home.model.history).close()

    def fails(*_, **__):
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = code
        raise error

    monkeypatch.setattr(sqlite3, "connect", fails)
    output = run(tmp_path, capsys)[1]
    assert ("damaged (disk I/O error)" in output, "it cannot be read (disk I/O error)" in output) == (damaged, not damaged)
    with pytest.raises(HistoryError) as raised:
        History(home.model.history)
    assert isinstance(raised.value, HistoryDamaged) == damaged


def test_what_waggle_says_of_itself_names_neither_node_nor_folder(tmp_path):
    home = paths.Home(tmp_path).prepare()
    name = keys.name_of(keys.load_or_create(home.identity).peer_id)
    report = doctor.report([doctor.Finding("engine", True, f"{name} in {tmp_path}/x")], home)
    assert report == "ok   engine: this node in HOME/x\n"


@pytest.mark.parametrize("engine", ["here", "by file"])
def test_a_swarms_name_which_a_person_typed_stays_at_home_and_that_of_the_shipped_one_does_not(tmp_path, engine):
    home = paths.Home(tmp_path / "home").prepare()
    shipped = shipped_swarms.first_swarm()
    other = msgspec.structs.replace(shipped, name="Anna Schmidt's class")
    for charter in (shipped, other) if engine == "here" else (shipped,):
        (home.charters / f"{charter.digest.hex()}.json").write_bytes(charters.encode(charter))
    if engine == "by file":
        (tmp_path / "class.json").write_bytes(charters.encode(other))
        settings.change(home.settings, {"swarm.charter": str(tmp_path / "class.json")})
    (home.charters / "0.json").write_bytes(b"damaged")
    requirements = doctor.report([doctor.Finding("engine", True, f"Answering for {other.name}, not for {shipped.name}")], home)
    assert requirements == f"ok   engine: Answering for a swarm, not for {shipped.name}\n"


@pytest.mark.parametrize(
    ("system", "machine"), [("linux", "x86_64"), ("win32", "AMD64"), ("darwin", "arm64"), ("darwin", "x86_64")]
)
def test_a_package_is_missed_only_where_the_installation_wants_it(system, machine):
    places = {"sys_platform": system, "platform_machine": machine}
    project = tomllib.loads((Path(paths.__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = [Requirement(text) for text in project["dependencies"]]
    installed = {
        requirement.name.replace("-", "_")
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate(places)
    }
    if system == "win32":
        installed.add("reasoning_gym")  # by itself: dev.py and docs/releasing.md
    installed |= {name.removesuffix("_Essentials") for name in installed}
    assert set(doctor.required_packages(system, machine, frozen=False)) <= installed
    assert bool(installed & {"torch"}) == ("torch" in doctor.required_packages(system, machine, frozen=False))
    assert doctor.required_packages(system, machine, frozen=True) == ()


def test_how_to_install_reasoning_gym_is_said_where_pip_left_it_out(tmp_path, monkeypatch):
    there = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "reasoning_gym" else there(name))
    finding = doctor._program(paths.Home(tmp_path))
    assert finding.well is False
    assert f"pip install --no-deps reasoning-gym=={importlib.metadata.version('reasoning-gym')})" in finding.says


def test_the_last_warnings_are_in_the_report(tmp_path):
    home = paths.Home(tmp_path)
    home.logs.mkdir(parents=True)
    (home.logs / "waggle.log").write_text("2026-01-01 10:00:00,000 WARNING waggle.x: too late for 10.0.0.1\n")
    assert "too late for …" in doctor.report([], home)
    assert list(log.lines(home.logs, level="ERROR")) == []


def test_the_findings_are_facts_for_programs_too_without_names_or_paths(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv(system_folders.CACHE, str(tmp_path / "cache"))
    doctor.run(argparse.Namespace(home=tmp_path / "ada", json=True))
    printed = capsys.readouterr().out
    assert {"engine", "settings", "model"} <= {finding["what"] for finding in json.loads(printed)}
    assert "ada" not in printed
