"""The two commands say beforehand what they need, on every system."""

import os
import signal
import subprocess
import sys
import venv

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
COMMAND = f"import dev, pathlib, sys; sys.exit(dev.waggle_python('-c', {LEAVES!r}, python=pathlib.Path(sys.executable)))"


@pytest.mark.skipif(sys.platform == "win32", reason="there a terminal of one's own is needed for Ctrl+C")
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


def test_an_environment_whose_making_was_interrupted_is_made_anew_and_a_whole_one_stays(tmp_path, monkeypatch):
    place = tmp_path / ".venv"
    monkeypatch.setattr(dev, "VENV", place)
    monkeypatch.setattr(dev, "PYTHON", place / ("Scripts/python.exe" if dev.WINDOWS else "bin/python"))
    monkeypatch.setattr(dev, "get", lambda *_: None)
    monkeypatch.setattr(dev, "has_compiler", lambda _: True)
    monkeypatch.setattr(dev, "pip", lambda *_: subprocess.check_output([dev.PYTHON, "-m", "pip", "--version"]))
    venv.create(place, with_pip=False, symlinks=not dev.WINDOWS)  # a kill comes before pip does
    for stays in (False, True):
        (place / "of before").touch()
        (place / ".waggle-stamp").unlink(missing_ok=True)
        dev.setup()
        assert (place / "of before").exists() == stays


@pytest.mark.parametrize("rest", [["engine"], ["seed", "--home", "x"], ["lab", "race"]])
def test_other_doors_do_without(rest):
    assert not dev.is_window(rest)


@pytest.mark.parametrize(("body", "here"), [("echo /Library/Developer/CommandLineTools", True), ("exit 2", False)])
def test_a_mac_has_a_compiler_where_its_command_line_tools_are(tmp_path, monkeypatch, body, here):
    program(tmp_path / "xcode-select", body)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert dev.has_compiler("darwin") == here


@pytest.mark.parametrize(("body", "here"), [("echo 'C:\\VS'", True), ("exit 0", False), (None, False)])
def test_windows_has_a_compiler_where_visual_studio_has_c(tmp_path, monkeypatch, body, here):
    place = tmp_path / "Microsoft Visual Studio/Installer"
    place.mkdir(parents=True)
    if body:
        program(place / "vswhere.exe", body)
    monkeypatch.setenv("PROGRAMFILES(X86)", str(tmp_path))
    assert dev.has_compiler("win32") == here


def program(path, body):
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
