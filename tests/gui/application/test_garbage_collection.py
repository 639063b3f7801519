import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path

import waggle
from waggle.gui.application.garbage_collection import collect_due

LISTED = """
import gc
from PySide6.QtWidgets import QApplication, QSpinBox, QVBoxLayout, QWidget
from waggle.gui.application.main import application

class Form(QWidget):
    def __init__(self):
        super().__init__()
        self.itself = self
        form = QVBoxLayout(self)
        for _ in range(20):
            form.addWidget(QSpinBox())  # whose own parts Python does not know before
        self.sizeHint()

application()
seen = 0
for _ in range(100):
    gc.set_threshold(0)  # none by itself, until
    Form()
    gc.set_threshold(gc.get_count()[0] + 25)  # so many objects more were made: while the widgets are listed
    seen = max(seen, len(QApplication.allWidgets()))
print(seen)
"""

ENDED = """
import gc, sys, threading, weakref
from PySide6.QtCore import QThread, QTimer
from waggle.gui.application.main import application
from waggle.gui.application.garbage_collection import EVERY_MS

class Ticking(QTimer):
    def __init__(self):
        super().__init__()
        self.itself = self
        self.start(10)

app = application()
gc.collect()
threads = []
ticking = weakref.ref(Ticking(), lambda _: threads.append(threading.current_thread()))
grown = []
other = threading.Thread(target=lambda: grown.extend([] for _ in range(100_000)))
other.start()
other.join()
assert ticking() is not None, "another thread collected"
ended = QTimer()
ended.timeout.connect(lambda: threads and app.quit())
ended.start(10)
app.exec()
print(threads == [threading.main_thread()])
"""

TESTED = """
import threading, weakref

ended = []

def test_that_fails_with_a_window_in_its_hands(window_told):
    window = window_told([])
    weakref.finalize(window._store, lambda: ended.append(threading.current_thread()))
    assert window is None

def test_after_it(qapp):
    assert not ended, "a traceback kept it"

def test_another_thread_makes_more_than_any_threshold():
    grown = []
    other = threading.Thread(target=lambda: grown.extend([] for _ in range(1_000_000)))
    other.start()
    other.join()
    assert ended == [threading.main_thread()]
"""


def _output(script: str) -> str:
    """Run a program; returns its output, and fails if it crashes or writes to stderr."""
    environment = dict(os.environ, PYTHONPATH=str(Path(waggle.__file__).parents[1]))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def test_widgets_are_listed_while_others_become_garbage() -> None:
    assert int(_output(LISTED)) >= 21, "those that nobody holds any more are among them"


def test_what_only_garbage_holds_ends_in_the_window_s_thread() -> None:
    assert _output(ENDED) == "True"


def test_what_a_failed_test_held_ends_in_the_window_s_thread_before_another_test_begins(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from gui.conftest import *")
    (tmp_path / "test_window.py").write_text(TESTED)
    paths = os.pathsep.join(str(path) for path in (Path(waggle.__file__).parents[1], Path(__file__).parents[2]))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-o",
        "qt_log_level_fail=WARNING",
        "-p",
        "no:xdist",
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")} | {"PYTHONPATH": paths}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr


class Circle:
    def __init__(self) -> None:
        self.itself = self


def test_the_young_are_looked_through_when_they_are_many_and_the_old_seldom() -> None:
    old = Circle()
    gc.collect()  # it is in the oldest generation now
    young, old = weakref.ref(Circle()), weakref.ref(old)
    collect_due()
    assert young() is not None, "nothing has grown"

    grown: list[list[object]] = []
    while old() is not None:
        grown.append([[] for _ in range(gc.get_threshold()[0] + 1)])
        collect_due()
        assert young() is None
        assert len(grown) < 200
    assert len(grown) > 100
