"""The door: from a cold start to a shown window, and out again when the engine has left."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import waggle

FAKE = Path(__file__).with_name("fake_engine.py")
PROGRAM = """
import sys
from PySide6.QtCore import QTimer
from waggle.gui import app, window

shown = []
def close():
    made = [top for top in app.QApplication.topLevelWidgets() if isinstance(top, window.Window)][0]
    shown.append((made.isVisible(), made._current.state.phase))
    made.close()

app.command_line = lambda arguments: [sys.executable, sys.argv[1], sys.argv[2]]
app.application()
QTimer.singleShot(2500, close)
code = app.run(app.Arguments(theme="light"))
print(code, *shown[0])
"""


@pytest.mark.parametrize(("kind", "phase"), [("well", "contributing"), ("fails", "problem")])
def test_the_window_leaves_after_its_engine(kind: str, phase: str) -> None:
    path = f"{Path(waggle.__file__).parents[1]}:{FAKE.parents[1]}"
    environment = {**os.environ, "PYTHONPATH": path, "QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(FAKE), kind], capture_output=True, text=True, timeout=60, env=environment, check=False
    )
    assert done.stdout.split() == ["0", "True", phase], done.stderr
    assert "Traceback" not in done.stderr
