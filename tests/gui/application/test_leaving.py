"""What ends is quiet, and nothing stays behind that was not chosen: real programs in a home folder of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import system_folders
from waggle.cli import main
from waggle.core import paths, stored_data

ENVIRONMENT = {"PYTHONPATH": "app", "QT_QPA_PLATFORM": "offscreen", "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
DIALOG = """
from PySide6.QtWidgets import QFileDialog
from waggle.gui.application import main
def save_screenshot(*_):
    dialog = QFileDialog()
    dialog.setOption(QFileDialog.Option.DontUseNativeDialog)
    dialog.show()
    dialog.accept()
    dialog.done(1)
    del dialog
    return 0
main.save_screenshot = save_screenshot
"""


def run_window(user: Path, *words: str, before: str = "") -> "subprocess.CompletedProcess[bytes]":
    code = f"{before}\nimport sys\nfrom waggle.cli.main import main as waggle\nsys.exit(waggle(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "--home", str(user / "home"), "--replay", *words]
    return subprocess.run(
        command,
        capture_output=True,
        check=False,
        timeout=300,
        env={**ENVIRONMENT, "HOME": str(user), "XDG_RUNTIME_DIR": str(user)},
    )


@pytest.mark.skipif(sys.platform == "win32", reason="HOME is not where Windows keeps things")
def test_a_replay_ends_quietly_and_leaves_nothing_behind(tmp_path):
    done = run_window(tmp_path, "--screenshot", str(tmp_path / "picture.png"))
    assert (done.returncode, done.stderr) == (0, b"")
    assert [path.name for path in tmp_path.iterdir() if path.name != ".cache"] == ["picture.png"]


@pytest.mark.skipif(sys.platform == "win32", reason="Qt uses the registry there")
def test_what_qt_remembers_of_file_dialogs_is_in_the_home_and_goes_with_it(tmp_path, monkeypatch):
    done = run_window(tmp_path, "--screenshot", str(tmp_path / "picture.png"), before=DIALOG)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / ".config").exists()
    home = paths.Home(tmp_path / "home")
    (home.root / stored_data.QT_SETTINGS).mkdir(parents=True, exist_ok=True)
    (home.root / stored_data.QT_SETTINGS / "QtProject.conf").touch()  # some platforms write it at the end only
    home.prepare()
    monkeypatch.setenv(system_folders.CACHE, str(tmp_path / "cache"))
    assert main.main(["goodbye", "--home", str(home.root), "--remove", "all"]) == 0
    assert not home.root.exists()


@pytest.mark.parametrize("keep", [[], ["--keep", "identity"]])
def test_goodbye_to_all_leaves_an_identity_only_where_it_was_chosen(tmp_path, monkeypatch, keep):
    monkeypatch.setenv(system_folders.CACHE, str(tmp_path / "cache"))
    home = paths.Home(tmp_path / "home").prepare()
    for path in (home.identity, home.root / "identity.20260101T000000.beef.key", home.settings, home.root / "streams.json"):
        path.write_bytes(b"x")
    for path in (home.root / "energy.json", home.root / "energy.json.new"):
        path.write_bytes(b"x")
    assert main.main(["goodbye", "--home", str(home.root), "--remove", "all", *keep]) == 0
    assert home.root.exists() == bool(keep)
    if keep:
        assert sorted(path.name for path in home.root.iterdir()) == ["identity.20260101T000000.beef.key", "identity.key"]
