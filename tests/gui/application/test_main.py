"""Entry point: from a cold start to a shown window and out again after the engine; a second start raises the first."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import waggle

FAKE = Path(__file__).parents[1] / "fake_engine.py"
PROGRAM = """
import sys
from pathlib import Path
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from waggle.gui.application import controller, main as app, main_window, single_instance

single_instance.ANSWER_MS = 60_000  # the first window may still be laying itself out

def close(waits=False):
    made = [top for top in QApplication.allWidgets() if isinstance(top, main_window.MainWindow)][0]
    if waits and made._store.state.phase == "preparing":
        QTimer.singleShot(100, lambda: close(waits))
        return
    print(made.isVisible(), made._store.state.phase, flush=True)
    made.close()

app.command_line = lambda arguments: [sys.executable, sys.argv[1], sys.argv[2]]
app.application()
controller.Controller.open_invite = lambda self, invite: (print("called with", invite, flush=True), close())
QTimer.singleShot(0, lambda: print("open", flush=True))
if sys.argv[4] == "closes":
    QTimer.singleShot(100, lambda: close(waits=True))
print(app.run(app.Arguments(home=Path(sys.argv[3]), theme="light", invite="".join(sys.argv[5:]))), flush=True)
"""
SOURCES = f"{Path(waggle.__file__).parents[1]}{os.pathsep}{FAKE.parents[1]}"
ENVIRONMENT = {**os.environ, "PYTHONPATH": SOURCES, "QT_QPA_PLATFORM": "offscreen"}


def command(kind: str, home: Path, *more: str) -> list[str]:
    """The command of a window without welcome questions: its home has settings already."""
    (home / "settings.toml").touch()
    return [sys.executable, "-c", PROGRAM, str(FAKE), kind, str(home), *more]


@pytest.fixture(params=["absolute"])
def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, by its path from the root or from the working directory."""
    monkeypatch.chdir(tmp_path.parent)
    return tmp_path if request.param == "absolute" else Path(tmp_path.name)


@pytest.fixture
def first(home: Path) -> Iterator[subprocess.Popen[str]]:
    """A window that stays open until a second start calls it."""
    process = subprocess.Popen(command("well", home, "stays"), stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize(("kind", "phase"), [("well", "contributing"), ("fails", "problem")])
def test_the_window_leaves_after_its_engine(kind: str, phase: str, tmp_path: Path) -> None:
    done = subprocess.run(
        command(kind, tmp_path, "closes"), capture_output=True, text=True, timeout=60, env=ENVIRONMENT, check=False
    )
    assert done.stdout.split() == ["open", "True", phase, "0"], done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "window.json").exists(), "where it stood is kept"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends a process, and asks nobody")
@pytest.mark.parametrize("asks", [signal.SIGINT, signal.SIGTERM])
def test_a_terminal_and_the_system_can_ask_the_window_to_leave(
    first: subprocess.Popen[str], tmp_path: Path, asks: signal.Signals
) -> None:
    assert first.stdout is not None
    assert first.stdout.readline() == "open\n"
    first.send_signal(asks)
    assert first.communicate(timeout=60)[0] == "0\n"
    assert (tmp_path / "window.json").exists(), "where it stood is kept"


@pytest.mark.parametrize("home", ["absolute", "relative"], indirect=True)
def test_a_second_start_raises_the_first_and_forwards_its_invite(first: subprocess.Popen[str], home: Path) -> None:
    assert first.stdout is not None
    assert first.stdout.readline() == "open\n"
    link = "waggle://join?charter=ab"
    second = subprocess.run(
        command("well", home, "stays", link), capture_output=True, text=True, timeout=60, env=ENVIRONMENT, check=False
    )
    assert second.stdout.split() == ["0"], second.stderr
    assert first.stdout.readline() == f"called with {link}\n"
    assert first.wait(timeout=60) == 0
