"""The developer commands report missing packages first, on every system."""

import ast
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import venv
from pathlib import Path
from types import ModuleType

import dev
import pytest

LEAVES = """
import signal, sys, time
def leave(*_):
    time.sleep(1.0)
    sys.exit(print("saved"))
signal.signal(signal.SIGINT, leave)
print("up", flush=True)
while True:
    signal.pause()
"""
SMALL_PROJECT = """
[project]
dependencies = []
optional-dependencies.dev = ["pip"]  # which a new environment has: nothing is downloaded
"""
COMMAND = f"import dev, pathlib, sys; sys.exit(dev.waggle_python('-c', {LEAVES!r}, python=pathlib.Path(sys.executable)))"


@pytest.fixture
def small_dev(tmp_path: Path) -> ModuleType:
    """dev.py in a source root of its own, whose set-up installs nothing."""
    (tmp_path / "packaging").mkdir()
    (tmp_path / "packaging/lock.txt").touch()
    (tmp_path / "pyproject.toml").write_text(SMALL_PROJECT, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("small_dev", shutil.copy(dev.__file__, tmp_path / "packaging"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl+C needs its own terminal there")
def test_ctrl_c_gives_what_runs_the_time_that_it_takes_to_leave():
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(dev.__file__)}
    command = [sys.executable, "-c", COMMAND]
    with subprocess.Popen(
        command, env=environment, start_new_session=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as terminal:
        assert terminal.stdout is not None
        assert terminal.stdout.readline() == "up\n"
        os.killpg(terminal.pid, signal.SIGINT)
        assert terminal.communicate() == ("saved\n", "")
    assert terminal.returncode == 0


@pytest.mark.parametrize("rest", [[], ["--replay"], ["waggle://join?charter=1"], ["invite.waggle"], ["INVITE.WAGGLE"]])
def test_what_opens_the_window_has_qts_libraries_looked_for(rest):
    assert dev.is_window(rest)


def test_an_invite_is_found_from_where_the_person_stands(tmp_path, monkeypatch):
    (tmp_path / "invite.waggle").touch()
    monkeypatch.chdir(tmp_path)
    assert dev.with_whole_paths(["--theme", "dark", "invite.waggle"]) == ["--theme", "dark", str(tmp_path / "invite.waggle")]
    assert dev.with_whole_paths(["export", "new.waggle"]) == ["export", "new.waggle"]


def test_an_environment_whose_making_was_interrupted_is_made_anew_and_a_whole_one_stays(small_dev):
    place = small_dev.VENV
    venv.create(place, with_pip=False, symlinks=not dev.WINDOWS)  # a kill comes before pip is installed
    for stays in (False, True):
        (place / "of before").touch()
        (place / ".waggle-stamp").unlink(missing_ok=True)
        small_dev.setup()
        assert (place / "of before").exists() == stays


def test_a_python_that_is_too_old_gets_a_sentence():
    """An older Python can parse the file, and the file imports nothing that it lacks before it checks the version."""
    tree = ast.parse(Path(dev.__file__).read_text(encoding="utf-8"), feature_version=(3, 8))
    names = {module.name for node in tree.body if isinstance(node, ast.Import) for module in node.names}
    assert names.isdisjoint({"tomllib", "zoneinfo", "graphlib"})


@pytest.mark.parametrize("command", ["run", "test", "lint", "setup", "package", "bench"])
def test_another_version_than_those_waggle_was_tried_with_is_refused(command, monkeypatch):
    monkeypatch.setattr(dev.sys, "version_info", (3, 10, 13))
    with pytest.raises(SystemExit, match=r"Waggle needs Python 3\.11 to 3\.13"):
        dev.main([command])


@pytest.mark.skipif(sys.platform == "win32", reason="there is no exec there")
def test_what_runs_takes_the_place_of_the_command_which_may_have_an_invite_with_a_key(small_dev, tmp_path):
    set_up(small_dev, 'echo $$ "$(pwd)" "$@"')
    (tmp_path / "elsewhere").mkdir()
    command = [sys.executable, small_dev.__file__, "run", "engine", "waggle://join?charter=1#key=2"]
    with subprocess.Popen(command, cwd=tmp_path / "elsewhere", text=True, stdout=subprocess.PIPE) as ran:
        assert ran.stdout is not None
        command_line = ran.stdout.read().split()
    assert command_line == [str(ran.pid), str(tmp_path), "-m", "waggle", "engine", "waggle://join?charter=1#key=2"]


@pytest.mark.skipif(sys.platform != "linux", reason="only on Linux does torch include CUDA")
def test_a_torch_with_cuda_is_not_packed(small_dev):
    set_up(small_dev, f"exit {dev.CUDA}")
    with pytest.raises(SystemExit, match=r"dev\.py clean && PIP_EXTRA_INDEX_URL"):
        small_dev.main(["package"])


@pytest.mark.parametrize("rest", [["engine"], ["seed", "--home", "x"], ["race"]])
def test_other_doors_do_without(rest):
    assert not dev.is_window(rest)


@pytest.mark.parametrize(("body", "here"), [("echo /Library/Developer/CommandLineTools", True), ("exit 2", False)])
def test_a_mac_has_a_compiler_where_its_command_line_tools_are(tmp_path, monkeypatch, body, here):
    program(tmp_path / "xcode-select", body)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert dev.has_compiler() == here


def set_up(small_dev, body):
    """Make an up-to-date environment whose Python is this shell script."""
    small_dev.PYTHON.parent.mkdir(parents=True)
    program(small_dev.PYTHON, body)
    (small_dev.VENV / ".waggle-stamp").write_text(small_dev.stamp(), encoding="utf-8")


def program(path, body):
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
