"""Waggle's own files are replaced or moved while the window is open."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton, QWidget
from pytestqt.qtbot import QtBot

import waggle
from waggle.gui.application.program_files import ProgramFiles, ask_to_close


def moved(program: Path) -> None:
    program.parent.rename(program.parent.with_name("gone"))


def replaced(program: Path) -> None:
    shutil.copytree(program.parent, program.parent.with_name("new"))
    shutil.rmtree(program.parent)
    program.parent.with_name("new").rename(program.parent)


def written(program: Path) -> None:
    program.write_text('__version__ = "2"\n')


@pytest.mark.parametrize("change", [moved, replaced, written])
def test_a_change_is_said_once(change, tmp_path: Path, qtbot: QtBot) -> None:
    program = tmp_path / "waggle" / "__init__.py"
    program.parent.mkdir()
    program.write_text('__version__ = "1"\n')
    os.utime(program, (1, 1))  # long ago: many systems give files that are written within milliseconds the same time
    files, signals = ProgramFiles(program=program), list[str]()
    files.changed.connect(lambda: signals.append("changed"))
    assert not files.check()
    change(program)
    assert [files.check(), files.check(), signals] == [True, True, ["changed"]]


@pytest.mark.qt_log_ignore("does not support")  # the platform without a screen says so
@pytest.mark.parametrize(("button", "leaves"), [("Close Waggle", 1), ("Later", 0)])
def test_the_person_decides_when_to_close(button: str, leaves: int, qtbot: QtBot) -> None:
    window, accepted = QWidget(), list[str]()
    qtbot.addWidget(window)
    box = ask_to_close(window)
    box.accepted.connect(lambda: accepted.append("leave"))
    next(each for each in box.findChildren(QPushButton) if each.text() == button).click()
    assert len(accepted) == leaves


CODE = """
import sys
import threading
from pathlib import Path
from PySide6.QtCore import QTimer
from waggle.core import paths
from waggle.gui.application import main, program_files
program_files.CHECK_MS = 200
def said(window):
    print("said", flush=True)
    box = asked(window)
    QTimer.singleShot(0, box.accept)
    return box
asked, main.ask_to_close = main.ask_to_close, said
package = Path(program_files.waggle.__file__).parent
threading.Timer(2.0, lambda: package.rename(package.with_name("waggle-old"))).start()
sys.exit(main.run(main.Arguments(home=Path(sys.argv[1]), replay=paths.example())))
"""


def test_a_window_whose_files_are_moved_away_says_so_and_closes(tmp_path: Path) -> None:
    source = Path(waggle.__file__).parent
    shutil.copytree(source, tmp_path / "app" / "waggle", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "resources").symlink_to(source.parents[1] / "resources")
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "app"), "QT_QPA_PLATFORM": "offscreen", "HOME": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path / "home")], env=environment, cwd=tmp_path, capture_output=True, text=True,
        timeout=200, check=False,
    )  # fmt: skip
    assert (ran.stdout, ran.returncode) == ("said\n", 0), ran.stderr
    assert "Traceback" not in ran.stderr
