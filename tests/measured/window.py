#!/usr/bin/env python3
"""Measures the window and writes window.json beside this file; run it in the development environment, with nothing else running.

    PYTHONPATH=app python tests/measured/window.py [--minutes 5] [--pictures]

A replay of the recorded run at 20 times its speed, with 500 peers that change, is shown page by page while a timer that is
due each millisecond looks how long the thread of the window did not come back to it: as time, and as work of that thread
alone, which a busy computer does not change. `soak_hours` are those of this replay.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import keep

ROOT = keep.ROOT
REPLAY = r"""
import json, random, sys, time
from PySide6.QtCore import QTimer, Qt
from PySide6.QtWidgets import QWidget
from waggle import paths
from waggle.gui.app import application
from waggle.gui.current import Current
from waggle.gui.frame import PAGES
from waggle.gui.look import Look
from waggle.gui.replay import Replay
from waggle.gui.window import Window
from waggle.protocol import events
import psutil

seconds = float(sys.argv[1])
app = application()
look = Look("light")
look.dress()
current = Current()
window = Window(look, current)
window.show()
chance, process = random.Random(7), psutil.Process()
worst = {"wall": 0.0, "cpu": 0.0}
last = [time.perf_counter(), time.thread_time()]

def tick():
    now, work = time.perf_counter(), time.thread_time()
    if begun:
        worst["wall"] = max(worst["wall"], now - last[0])
        worst["cpu"] = max(worst["cpu"], work - last[1])
    last[:] = now, work

def peers():
    missing = len(current.state.peers) < 500  # a replay that begins again begins with none
    for number in range(500) if missing else [chance.randrange(500) for _ in range(25)]:
        current.take(events.PeerChanged(peer=events.PeerInfo(
            id=f"12D3KooW{number}", name=f"Peer {number}", received=chance.randrange(900), useful=4, used=chance.randrange(200),
            taken=chance.randrange(400), delay_ms=chance.random() * 200, seen_at=current.state.at), at=current.state.at))

def replayed():
    made = Replay(paths.example(), 20.0, window)
    made.told.connect(current.take)
    made.ended.connect(replayed)
    made.start()

def turn():
    page = names.pop(0)
    names.append(page)
    window.show_page(page)

names, begun = list(PAGES), []
for name in PAGES:  # made once before anything is measured: the first sight of a page is no block while watching
    window.show_page(name)
    for _ in range(5):
        app.processEvents()
unnamed = sum(1 for each in window.findChildren(QWidget) if each.focusPolicy() & Qt.FocusPolicy.TabFocus
              and not each.accessibleName() and not each.objectName().startswith("qt_"))
timers = []
for every, act in ((1, tick), (250, peers), (3000, turn)):
    timer = QTimer(window)
    timer.timeout.connect(act)
    timer.start(every)
    timers.append(timer)
replayed()
memory = []
QTimer.singleShot(5000, lambda: begun.append(1) or memory.append((process.memory_info().rss, process.num_fds())))
QTimer.singleShot(int(seconds * 1000), lambda: app.exit(0))
app.exec()
memory.append((process.memory_info().rss, process.num_fds()))
print(json.dumps(worst | {"unnamed": unnamed, "memory": memory, "peers": len(current.state.peers)}))
"""
IDLE = r"""
import sys, time
from PySide6.QtCore import QTimer
from waggle.gui.app import application
from waggle.gui.current import Current
from waggle.gui.look import Look
from waggle.gui.window import Window
app = application()
look = Look("light")
look.dress()
window = Window(look, Current())
window.show()
marks = []
QTimer.singleShot(3000, lambda: marks.append((time.monotonic(), time.process_time())))
QTimer.singleShot(23000, lambda: (marks.append((time.monotonic(), time.process_time())), app.exit(0)))
app.exec()
(a, b), (c, d) = marks
print(100 * (d - b) / (c - a))
"""
START = r"""
import sys, time
from PySide6.QtCore import QTimer
from waggle.gui import app, window
application = app.application()
class Seen(window.Window):
    def paintEvent(self, event):
        super().paintEvent(event)
        QTimer.singleShot(0, lambda: application.exit(0))
from waggle.gui.current import Current
from waggle.gui.look import Look
look = Look("light")
look.dress()
made = Seen(look, Current())
made.show()
application.exec()
print("shown")
"""


def main() -> int:
    made = argparse.ArgumentParser()
    made.add_argument("--minutes", type=float, default=5.0)
    made.add_argument("--pictures", action="store_true", help="take the whole matrix of pictures too, which takes minutes")
    chosen = made.parse_args()
    keep.require_clean()
    figures: dict[str, object] = {"load_average_before": round(os.getloadavg()[0], 1)}
    starts = []
    for _ in range(4):  # the first one warms the disk's cache
        began = time.monotonic()
        _run(START)
        starts.append((time.monotonic() - began) * 1000)
    figures["window_ms_warm"] = round(min(starts[1:]))
    figures["idle_cpu_percent"] = round(float(_run(IDLE)), 2)

    replay = json.loads(_run(REPLAY, str(chosen.minutes * 60)))
    (first, descriptors), (last, left) = replay["memory"]
    figures |= {
        "gui_block_ms_worst": round(replay["wall"] * 1000, 1), "gui_work_ms_worst": round(replay["cpu"] * 1000, 1),
        "peers": replay["peers"], "unnamed_widgets": replay["unnamed"], "soak_hours": round(chosen.minutes / 60, 3),
        "soak_crashes": 0, "soak_memory_growth_mb": round((last - first) / 1e6, 1), "soak_handles_growth": left - descriptors,
        "contrast_min": round(_contrast(), 2), "screenshots": _pictures() if chosen.pictures else 0,
    }  # fmt: skip
    keep.write(Path(__file__).resolve(), dict(sorted(figures.items())))
    return 0


def _run(program: str, *arguments: str) -> str:
    """What a program of its own prints last; a crash of it ends the measurement."""
    environment = {"QT_QPA_PLATFORM": "offscreen", **os.environ, "PYTHONPATH": str(ROOT / "app")}
    said = subprocess.run(
        [sys.executable, "-c", program, *arguments], env=environment, capture_output=True, text=True, check=True, cwd=ROOT
    )
    return said.stdout.strip().splitlines()[-1]


def _contrast() -> float:
    """The lowest contrast of any words on any ground they may stand on, over all themes."""
    sys.path[:0] = [str(ROOT / "app"), str(ROOT / "tests")]
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from gui.test_look import FLOORS, ratio
    from waggle.gui.look import tokens

    words = [(ink, grounds) for ink, grounds, floor in FLOORS if floor >= 4.5]
    return min(
        ratio(colours[ink], colours[ground])
        for colours in tokens().colour.values()
        for ink, grounds in words
        for ground in grounds
    )


def _pictures() -> int:
    with tempfile.TemporaryDirectory() as folder:
        environment = {"QT_QPA_PLATFORM": "offscreen", **os.environ, "PYTHONPATH": str(ROOT / "app")}
        subprocess.run([sys.executable, "-m", "waggle.gui.matrix", folder], env=environment, check=True, capture_output=True)
        return sum(1 for path in Path(folder).glob("*@*.png"))


if __name__ == "__main__":
    raise SystemExit(main())
