"""One window in a process of its own, for window.py to measure: `start`, `idle`, `replay SECONDS` and `soak SECONDS`.

Each prints one line of JSON last. A replay shows the recorded run at 20 times its speed, again and again, page after page, beside
500 peers that change. A soak is a replay under qasync in which dialogs are opened and closed and coroutines come and go.
"""

import asyncio
import json
import random
import resource
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import psutil
import qasync
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QPaintEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QDialog, QWidget

from waggle.core import paths
from waggle.gui.application.garbage_collection import freeze_long_lived
from waggle.gui.application.main import application
from waggle.gui.application.main_window import MainWindow
from waggle.gui.engine_client.replay import Replay
from waggle.gui.pages import PAGES
from waggle.gui.pages.context import PageContext
from waggle.gui.state.store import StateStore
from waggle.gui.theme.theme import Theme
from waggle.protocol import events

PEERS, SPEED = 500, 20.0
LONG_S = 0.05  # a person notices what takes longer
TICK_MS, PEERS_MS, PAGE_MS, DIALOG_MS = 1, 250, 3000, 1100
WARM_S = 60.0  # before memory is looked at; the first tenth of a shorter run
OPENS = ("Save", "Save a share card", "Join by a link", "Open a file", "Open a folder", "Show as table", "Compare models")
FRUIT = 17  # what each coroutine of a soak brings back


def start() -> object:
    """Ends when the window has been painted once."""

    class Seen(MainWindow):
        def paintEvent(self, event: QPaintEvent) -> None:
            super().paintEvent(event)
            QTimer.singleShot(0, lambda: QApplication.exit(0))

    seen = Seen(PageContext(_dressed()))
    seen.show()
    QApplication.exec()
    return True


def idle() -> object:
    """Percent of a core while nothing happens, over twenty seconds."""
    window = MainWindow(PageContext(_dressed()))
    window.show()
    marks: list[tuple[float, float]] = []
    QTimer.singleShot(3000, lambda: marks.append((time.monotonic(), time.process_time())))
    QTimer.singleShot(23000, lambda: (marks.append((time.monotonic(), time.process_time())), QApplication.exit(0)))
    QApplication.exec()
    (began, before), (ended, after) = marks
    return 100 * (after - before) / (ended - began)


class Moment(NamedTuple):
    """What a thread has seen so far: time, its own work, pages that had to be read, and how often others took its processor."""

    wall_s: float = 0.0
    work_s: float = 0.0
    faults: int = 0
    pushed: int = 0

    @classmethod
    def now(cls) -> "Moment":
        used = resource.getrusage(resource.RUSAGE_THREAD)
        return cls(time.perf_counter(), time.thread_time(), used.ru_majflt, used.ru_nivcsw)


class Shown:
    """The window, the run that is replayed in it, and how long its thread did not come back to a timer of one millisecond."""

    def __init__(self, seconds: float) -> None:
        self.current = StateStore()
        self.window = MainWindow(PageContext(_dressed(), store=self.current))
        self.window.show()
        self._noise = random.Random(7)
        self._pages = list(PAGES)
        for name in PAGES:  # the first sight of a page is no block while watching
            self.window.show_page(name)
            for _ in range(5):
                QApplication.processEvents()
        freeze_long_lived()
        self._begun, self._last = False, Moment.now()
        self.longest, self.work_s, self.long_turns, self.long_works = Moment(), 0.0, 0, 0
        self.memory: list[int] = []
        self.handles: list[int] = []
        QTimer.singleShot(int(1000 * min(WARM_S, seconds / 10)), self._warm)
        self.every(TICK_MS, self._tick)
        self.every(PEERS_MS, self._change_peers)
        self.every(PAGE_MS, self._turn)
        self._replay()

    def every(self, milliseconds: int, act: Callable[[], object]) -> None:
        timer = QTimer(self.window)
        timer.timeout.connect(act)
        timer.start(milliseconds)

    def look_at_memory(self) -> None:
        process = psutil.Process()
        self.memory.append(process.memory_info().rss)
        self.handles.append(process.num_fds())

    def found(self) -> dict[str, object]:
        self.look_at_memory()
        longest = self.longest
        return {
            "block_ms": 1000 * longest.wall_s, "long_turns": self.long_turns,
            "work_ms": 1000 * self.work_s, "long_works": self.long_works,
            "block_was": {
                "work_ms": round(1000 * longest.work_s, 1), "read_from_disk": longest.faults, "pushed_aside": longest.pushed,
            },
            "peers": len(self.current.state.peers),
            "memory_growth_mb": (self.memory[-1] - self.memory[0]) / 1e6, "handles_growth": self.handles[-1] - self.handles[0],
            "unnamed": sum(map(_unnamed, self.window.findChildren(QWidget))),
        }  # fmt: skip

    def _warm(self) -> None:
        self._begun = True
        self.look_at_memory()

    def _tick(self) -> None:
        now = Moment.now()
        if self._begun:
            turn = Moment(*(after - before for after, before in zip(now, self._last, strict=True)))
            self.longest = max(self.longest, turn)
            self.work_s = max(self.work_s, turn.work_s)
            self.long_turns += turn.wall_s > LONG_S
            self.long_works += turn.work_s > LONG_S
        self._last = now

    def _change_peers(self) -> None:
        missing = len(self.current.state.peers) < PEERS  # a replay that begins again begins with none
        noise = self._noise
        for number in range(PEERS) if missing else [noise.randrange(PEERS) for _ in range(25)]:
            peer = events.PeerInfo(
                id=f"12D3KooW{number}", name=f"Peer {number}", received=noise.randrange(900), useful=4, used=noise.randrange(200),
                taken=noise.randrange(400), delay_ms=noise.random() * 200, seen_at=self.current.state.at,
            )  # fmt: skip
            self.current.take(events.PeerChanged(peer=peer, at=self.current.state.at))

    def _turn(self) -> None:
        self._pages.append(self._pages.pop(0))
        self.window.show_page(self._pages[-1])

    def _replay(self) -> None:
        made = Replay(paths.example(), SPEED, self.window)
        made.event_received.connect(self.current.take)
        made.ended.connect(made.deleteLater)
        made.ended.connect(self._replay)
        made.start()


def replay(seconds: float) -> object:
    shown = Shown(seconds)
    QTimer.singleShot(int(seconds * 1000), lambda: QApplication.exit(0))
    QApplication.exec()
    return shown.found()


def soak(seconds: float) -> object:
    """Ends by itself only where nothing hangs: each coroutine that was begun must bring back what it was sent for."""
    loop = qasync.QEventLoop(application())
    asyncio.set_event_loop(loop)
    shown = Shown(seconds)
    done = {"dialogs": 0, "tasks": 0}
    shown.every(DIALOG_MS, lambda: _press_and_close(shown.window, done))
    with loop:
        loop.run_until_complete(_errands(loop, seconds, done))
        left = len(asyncio.all_tasks(loop))
    still = sum(dialog.isVisible() for dialog in shown.window.findChildren(QDialog))
    return {**shown.found(), **done, "hung_tasks": left, "dialogs_left": still}


async def _errands(loop: asyncio.AbstractEventLoop, seconds: float, done: dict[str, int]) -> None:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        fruits = await asyncio.wait_for(asyncio.gather(_errand(), _errand(), loop.run_in_executor(None, lambda: FRUIT)), 30)
        assert fruits == [FRUIT] * 3
        done["tasks"] += len(fruits)


async def _errand() -> int:
    """Waits, as coroutines do, and comes back."""
    await asyncio.sleep(0.2)
    return FRUIT


def _press_and_close(window: MainWindow, done: dict[str, int]) -> None:
    """Close what is open; where nothing is, press one of the buttons that open something."""
    dialogs = [dialog for dialog in window.findChildren(QDialog) if dialog.isVisible()]
    for dialog in dialogs:
        dialog.reject()
        done["dialogs"] += 1
    buttons = [each for each in window.findChildren(QAbstractButton) if each.isVisible() and each.text() in OPENS]
    if buttons and not dialogs:
        QTest.mouseClick(random.choice(buttons), Qt.MouseButton.LeftButton)


def _dressed() -> Theme:
    application()
    theme = Theme("light")
    theme.dress()
    return theme


def _unnamed(widget: QWidget) -> bool:
    chosen = widget.focusPolicy() & Qt.FocusPolicy.TabFocus
    return bool(chosen and not widget.accessibleName() and not widget.objectName().startswith("qt_"))


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*map(float, sys.argv[2:]))))
