"""The window's door: shows the window first, then starts the engine or a replay, and leaves when the engine has left."""

import argparse
import asyncio
import logging
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import cast, get_args

from PySide6.QtCore import QTimer
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QApplication

from waggle.gui.current import Current
from waggle.gui.engine_process import EngineProcess, command_line
from waggle.gui.look import Look, Theme
from waggle.gui.paint import Mark
from waggle.gui.replay import Replay
from waggle.gui.window import Window
from waggle.gui.words import tr
from waggle.protocol.commands import AnyCommand

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """What the command line may say about the window; argparse makes the same names."""

    replay: Path | None = None
    speed: float = 1.0
    theme: str | None = None
    page: str | None = None
    screenshot: Path | None = None
    engine_arguments: list[str] = field(default_factory=list)


def run(arguments: Arguments | argparse.Namespace) -> int:
    """Show the window until it is closed; returns the exit status of the process."""
    app = application()
    theme = arguments.theme if arguments.theme in get_args(Theme) else "system"
    look = Look(cast(Theme, theme))
    look.dress()
    app.setWindowIcon(_mark_icon(look))
    if arguments.screenshot is not None and arguments.replay is not None:
        return take_picture(look, arguments.replay, arguments.page or "home", arguments.screenshot)
    return _live(app, look, arguments)


def application() -> QApplication:
    """The one QApplication, in a style that looks the same everywhere."""
    app = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(app, QApplication)
    app.setApplicationName("Waggle")
    app.setStyle("Fusion")
    app.setQuitOnLastWindowClosed(False)
    return app


def take_picture(look: Look, recording: Path, page: str, picture: Path) -> int:
    """Play a recording to its end, show a page, and save the window as a picture."""
    current = Current()
    current.tell_time_by_events()
    window = Window(look, current)
    replay = Replay(recording)
    replay.told.connect(current.take)
    replay.ended.connect(window.show_replay)
    replay.play_all()
    window.show()
    window.show_page(page)
    for _ in range(3):  # layouts settle in the second pass
        QApplication.processEvents()
    return 0 if window.grab().save(str(picture)) else 1


def _live(app: QApplication, look: Look, arguments: Arguments | argparse.Namespace) -> int:
    import qasync

    current = Current()
    source: EngineProcess | Replay
    if arguments.replay is not None:
        source = Replay(arguments.replay, arguments.speed)
        window = Window(look, current)
        _join_replay(source, current, window)
    else:
        source = engine = EngineProcess(command_line(arguments.engine_arguments))
        window = Window(look, current, can_start=lambda: not engine.running)
        engine.refused.connect(window.refused)
        engine.ended.connect(leave)
        window.start_wanted.connect(engine.start)
        window.closing.connect(engine.stop)
    source.told.connect(current.take)
    window.commanded.connect(_sender(source, window))
    sys.excepthook = _reporter(window)
    loop = qasync.QEventLoop(app)
    asyncio.set_event_loop(loop)
    window.show_page(arguments.page or "home")
    window.show()

    def begin() -> None:
        source.start()
        current.flush()  # the first drawing came before there was an engine, and offered to start one

    QTimer.singleShot(0, begin)
    with loop:
        loop.run_forever()
    return 0


def leave() -> None:
    """End the event loop. Not `quit`: that asks the windows first, and ours says no until the engine has left."""
    QApplication.exit(0)


def _join_replay(replay: Replay, current: Current, window: Window) -> None:
    current.tell_time_by_events()
    window.show_replay()
    replay.ended.connect(window.show_replay)
    window.closing.connect(replay.stop)
    window.closing.connect(leave)


def _sender(source: EngineProcess | Replay, window: Window) -> "CommandSender":
    return CommandSender(source, window)


class CommandSender:
    """Takes a page's command to whoever plays the engine, and says so when nobody does."""

    def __init__(self, source: EngineProcess | Replay, window: Window) -> None:
        self._source, self._window = source, window

    def __call__(self, command: AnyCommand) -> None:
        if not self._source.send(command):
            self._window.release()


class _Reporter:
    """The window's exception hook: a fault in the window never ends the engine."""

    def __init__(self, window: Window) -> None:
        self._window = window

    def __call__(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        log.error("fault in the window", exc_info=(kind, error, trace))
        self._window.notice(tr("Something in the window went wrong: %1").replace("%1", kind.__name__))


def _reporter(window: Window) -> _Reporter:
    return _Reporter(window)


def _mark_icon(look: Look) -> QIcon:
    mark = Mark(look, 256)
    pixmap = QPixmap(256, 256)
    pixmap.fill("transparent")
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    mark.draw(painter, pixmap.rect().toRectF())
    painter.end()
    return QIcon(pixmap)
