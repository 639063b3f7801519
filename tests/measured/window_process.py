"""A window in a process of its own, for window.py to measure.

`start`, `idle`, `opening 0` or `opening 1`, `reach`, `replay SECONDS` or `soak SECONDS`.

The last line of output is JSON. A replay repeats the example recording at 20 times its speed, page after page, with 500 changing
peers. A soak is a replay in the window's own event loop, in which dialogs open and close and a fake engine is asked all the time.
"""

import asyncio
import json
import random
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import psutil
import qasync
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QPaintEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QDialog, QWidget

from gui.unreachable import unreachable
from pictures.event_loop import application_with_coroutines
from pictures.matrix import example
from pictures.screenshots import window_of, with_peers
from waggle.core import paths
from waggle.core.errors import EngineError
from waggle.gui.application.garbage_collection import freeze_long_lived
from waggle.gui.application.main import application
from waggle.gui.application.main_window import MainWindow
from waggle.gui.engine_client.engine_client import EngineClient
from waggle.gui.engine_client.engine_process import EngineProcess
from waggle.gui.engine_client.replay import Replay
from waggle.gui.pages import PAGES
from waggle.gui.pages.context import PageContext
from waggle.gui.state.store import StateStore
from waggle.gui.theme.theme import Theme
from waggle.protocol import events
from waggle.protocol.commands import ChoosePeer, ReadInvite, new_id
from waggle.protocol.events_swarms import InviteRead

PEERS, SPEED = 500, 20.0
LONG_BLOCK_S = 0.05  # a person notices longer blocks
SETTLED_S = 0.3  # after which a page that was opened has been painted, with all its parts
TICK_MS, PEERS_MS, PAGE_MS, DIALOG_MS = 1, 250, 3011, 1100  # a page opens at any moment between two changes of peers
WARM_UP_S = 60.0  # before the first sample of memory; in shorter runs a tenth
OPENING_BUTTONS = (
    "Save",
    "Save a picture to share",
    "Join with an invite",
    "Open a file",
    "Open a folder",
    "Show as table",
)
FAKE = Path(__file__).parents[1] / "gui" / "fake_engine.py"


def start() -> object:
    """Show a window until it has been painted once."""

    class ClosingWindow(MainWindow):
        def paintEvent(self, event: QPaintEvent) -> None:
            super().paintEvent(event)
            QTimer.singleShot(0, lambda: QApplication.exit(0))

    window = ClosingWindow(PageContext(_look()))
    window.show()
    QApplication.exec()
    return True


def idle() -> object:
    """Percent of a core while nothing happens, over twenty seconds."""
    window = MainWindow(PageContext(_look()))
    window.show()
    marks: list[tuple[float, float]] = []
    QTimer.singleShot(3000, lambda: marks.append((time.monotonic(), time.process_time())))
    QTimer.singleShot(23000, lambda: (marks.append((time.monotonic(), time.process_time())), QApplication.exit(0)))
    QApplication.exec()
    (began, before), (ended, after) = marks
    return 100 * (after - before) / (ended - began)


def opening(ahead: float) -> object:
    """CPU milliseconds of this thread to open each page for the first time; 1: after quiet seconds, which build it ahead."""
    window = window_of(_look(), example(), replay=False)
    _turn_for(SETTLED_S)
    if not ahead:
        window._build_ahead.deleteLater()
    while ahead and len(window.pages.built) < len(PAGES):
        _turn_for(SETTLED_S)
    milliseconds = {}
    for name in PAGES:
        began = time.thread_time()
        window.show_page(name)
        _turn_for(SETTLED_S)
        milliseconds[name] = round(1000 * (time.thread_time() - began), 1)
    window.hide()
    return milliseconds


def _turn_for(seconds: float) -> None:
    QTimer.singleShot(int(1000 * seconds), lambda: QApplication.exit(0))
    QApplication.exec()


def reach() -> object:
    """How many controls a mouse cannot reach, over all screens and pages."""
    return len(unreachable(window_of(_look(), with_peers(example()), replay=False)))


class Moment(NamedTuple):
    """Counters of a thread: wall-clock time, its own CPU time, major page faults, and involuntary context switches."""

    wall_s: float = 0.0
    work_s: float = 0.0
    faults: int = 0
    pushed: int = 0

    @classmethod
    def now(cls) -> "Moment":
        used = resource.getrusage(resource.RUSAGE_THREAD)
        return cls(time.perf_counter(), time.thread_time(), used.ru_majflt, used.ru_nivcsw)


class MeasuredWindow:
    """A window that replays a recording and measures how long its thread does not return to a timer of one millisecond."""

    def __init__(self, seconds: float) -> None:
        self.current = StateStore()
        self.window = MainWindow(PageContext(_look(), store=self.current))
        self.window.show()
        self._noise = random.Random(7)
        self._pages = list(PAGES)
        for name in PAGES:  # before measuring, because a page takes longer the first time
            self.window.show_page(name)
            for _ in range(5):
                QApplication.processEvents()
        freeze_long_lived()
        self._is_warm, self._last = False, Moment.now()
        self.longest, self.work_s, self.long_turns, self.long_works = Moment(), 0.0, 0, 0
        self.memory: list[int] = []
        self.handles: list[int] = []
        QTimer.singleShot(int(1000 * min(WARM_UP_S, seconds / 10)), self._warm)
        self.every(TICK_MS, self._tick)
        self.every(PEERS_MS, self._change_peers)
        self.every(PAGE_MS, self._turn)
        self._replay()

    def every(self, milliseconds: int, act: Callable[[], object]) -> None:
        timer = QTimer(self.window)
        timer.timeout.connect(act)
        timer.start(milliseconds)

    def sample_memory(self) -> None:
        process = psutil.Process()
        self.memory.append(process.memory_info().rss)
        self.handles.append(process.num_fds())

    def results(self) -> dict[str, object]:
        self.sample_memory()
        longest = self.longest
        return {
            "block_ms": 1000 * longest.wall_s, "long_turns": self.long_turns,
            "work_ms": 1000 * self.work_s, "long_works": self.long_works,
            "block_was": {
                "work_ms": round(1000 * longest.work_s, 1), "read_from_disk": longest.faults, "pushed_aside": longest.pushed,
            },
            "peers": len(self.current.state.peers),
            "memory_growth_mb": (self.memory[-1] - self.memory[0]) / 1e6, "handles_growth": self.handles[-1] - self.handles[0],
            "unnamed": sum(map(_is_unnamed, self.window.findChildren(QWidget))),
        }  # fmt: skip

    def _warm(self) -> None:
        self._is_warm = True
        self.sample_memory()

    def _tick(self) -> None:
        now = Moment.now()
        if self._is_warm:
            turn = Moment(*(after - before for after, before in zip(now, self._last, strict=True)))
            self.longest = max(self.longest, turn)
            self.work_s = max(self.work_s, turn.work_s)
            self.long_turns += turn.wall_s > LONG_BLOCK_S
            self.long_works += turn.work_s > LONG_BLOCK_S
        self._last = now

    def _change_peers(self) -> None:
        has_too_few = len(self.current.state.peers) < PEERS  # a replay starts without peers
        noise = self._noise
        for number in range(PEERS) if has_too_few else [noise.randrange(PEERS) for _ in range(25)]:
            peer = events.PeerInfo(
                id=f"12D3KooW{number}", name=f"Peer {number}", received=noise.randrange(900), useful=4, used=noise.randrange(200),
                groups_pulled=noise.randrange(400), delay_ms=noise.random() * 200, seen_at=self.current.state.at,
            )  # fmt: skip
            self.current.take(events.PeerChanged(peer=peer, at=self.current.state.at))

    def _turn(self) -> None:
        self._pages.append(self._pages.pop(0))
        self.window.show_page(self._pages[-1])

    def _replay(self) -> None:
        recording = Replay(paths.example(), SPEED, self.window)
        recording.event_received.connect(self.current.take)
        recording.ended.connect(recording.deleteLater)
        recording.ended.connect(self._replay)
        recording.start()


def replay(seconds: float) -> object:
    measured = MeasuredWindow(seconds)
    QTimer.singleShot(int(seconds * 1000), lambda: QApplication.exit(0))
    QApplication.exec()
    return measured.results()


def soak(seconds: float) -> object:
    """Run a soak. It ends only if nothing hangs: every command must get its answer."""
    with asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(application())) as runner:
        return runner.run(_soak(seconds))


async def _soak(seconds: float) -> object:
    measured = MeasuredWindow(seconds)
    done = {"dialogs": 0, "tasks": 0}
    measured.every(DIALOG_MS, lambda: _press_and_close(measured.window, done))
    engine, answers = EngineProcess(lambda: [sys.executable, str(FAKE), "well"]), StateStore()
    client = EngineClient(engine.send)
    engine.event_received.connect(answers.take)
    answers.applied.connect(client.take)
    engine.start()
    await client.until(lambda state: state.phase == "contributing")
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done["tasks"] += await asyncio.wait_for(_ask(client), 30)
    engine_ended = asyncio.Event()
    engine.ended.connect(engine_ended.set)
    engine.stop()
    await engine_ended.wait()
    for dialog in measured.window.findChildren(QDialog):
        dialog.reject()
    await asyncio.sleep(SETTLED_S)
    hung_tasks = len(asyncio.all_tasks()) - 1
    dialogs_left = sum(dialog.isVisible() for dialog in measured.window.findChildren(QDialog))
    return {**measured.results(), **done, "hung_tasks": hung_tasks, "dialogs_left": dialogs_left}


async def _ask(client: EngineClient) -> int:
    """Ask for an invite's swarm twice at once and have a choice refused, beside work in a thread; returns how many answered."""
    link = "waggle://join?charter=ab"
    reads = [client.ask(ReadInvite(id=new_id(), link=link), InviteRead) for _ in range(2)]
    refused = client.command(ChoosePeer(id=new_id(), peer="12D3KooWUnknown", choice="muted"))
    *invites, error, _ = await asyncio.gather(*reads, refused, asyncio.to_thread(time.sleep, 0.2), return_exceptions=True)
    assert all(isinstance(invite, InviteRead) for invite in invites)
    assert isinstance(error, EngineError)
    return 3


def _press_and_close(window: MainWindow, done: dict[str, int]) -> None:
    """Close all open dialogs; if there are none, press one of the buttons that open a dialog."""
    dialogs = [dialog for dialog in window.findChildren(QDialog) if dialog.isVisible()]
    for dialog in dialogs:
        dialog.reject()
        done["dialogs"] += 1
    buttons = [
        button for button in window.findChildren(QAbstractButton) if button.isVisible() and button.text() in OPENING_BUTTONS
    ]
    if buttons and not dialogs:
        QTest.mouseClick(random.choice(buttons), Qt.MouseButton.LeftButton)


def _look() -> Theme:
    application_with_coroutines()
    theme = Theme("light")
    theme.apply()
    return theme


def _is_unnamed(widget: QWidget) -> bool:
    chosen = widget.focusPolicy() & Qt.FocusPolicy.TabFocus
    return bool(chosen and not widget.accessibleName() and not widget.objectName().startswith("qt_"))


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*map(float, sys.argv[2:]))))
