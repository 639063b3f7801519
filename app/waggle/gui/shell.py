"""The shell: what outlives a window. It owns the tray, shows and hides the window, and sees that everything leaves in time."""

from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace
from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication

from waggle.gui import kept, notices, tray
from waggle.gui.current import Current
from waggle.gui.engine_process import EngineProcess
from waggle.gui.look import Look
from waggle.gui.replay import Replay
from waggle.gui.tray import Tray
from waggle.gui.window import Window
from waggle.gui.words import tr
from waggle.protocol.commands import AnyCommand
from waggle.protocol.state import State
from waggle.settings import Settings

Source = EngineProcess | Replay


class Shell(QObject):
    """Window, tray and the source of events; `chosen` gives the settings as they are at the moment of asking.

    `left` says that nothing is running any more.
    """

    left = Signal()

    def __init__(self, look: Look, current: Current, source: Source, memory: Path | None, chosen: Callable[[], Settings]) -> None:
        super().__init__()
        self._look, self._current, self._source, self._memory, self._chosen = look, current, source, memory, chosen
        self._kept = kept.read(memory) if memory is not None else kept.Kept()
        self._told = State()
        self.window = self._made_window()
        self.tray = Tray(look, self)
        self.tray.raised.connect(self.raise_window)
        self.tray.commanded.connect(self.send)
        self.tray.leave_wanted.connect(self.leave)
        current.changed.connect(self._changed)
        source.told.connect(current.take)
        if isinstance(source, EngineProcess):
            source.refused.connect(self._refused)
            source.ended.connect(self.left)
        else:
            current.tell_time_by_events()
            source.ended.connect(self._replay_ended)
        QGuiApplication.instance().commitDataRequest.connect(self.leave)  # type: ignore[union-attr]

    def begin(self, page: str | None) -> None:
        """Show the window where it stood, and start the source of events."""
        self.window.restoreGeometry(self._kept.geometry_bytes)
        self.window.show_page(page or self._kept.page)
        self.window.show()
        self.tray.show()

    def start(self) -> None:
        self._source.start()
        self._current.flush()  # the first drawing came before there was an engine, and offered to start one

    def raise_window(self) -> None:
        self.window.showNormal() if self.window.isMinimized() else self.window.show()
        self.window.raise_()
        self.window.activateWindow()

    def called(self, invite: str) -> None:
        """A second start: this window comes to the front, with the invite that it brought."""
        self.raise_window()
        if invite:
            self.window.show_invite(invite)

    def send(self, command: AnyCommand) -> None:
        """Take a command to whoever plays the engine, and say so when nobody does."""
        if not self._source.send(command):
            self.window.release()

    def leave(self) -> None:
        """End everything. The engine is given its time; asking again ends it at once."""
        self._remember()
        self.window.show_leaving()
        self._source.stop()
        if isinstance(self._source, Replay):
            self.left.emit()

    def _made_window(self) -> Window:
        source = self._source
        can_start = (lambda: not source.running) if isinstance(source, EngineProcess) else (lambda: False)
        window = Window(self._look, self._current, can_start=can_start)
        window.commanded.connect(self.send)
        window.closing.connect(self._closed)
        window.leave_wanted.connect(self.leave)
        if isinstance(source, EngineProcess):
            window.start_wanted.connect(source.start)
        else:
            window.show_replay()
        return window

    def _closed(self) -> None:
        """The person closed the window: to the tray where there is one and it is wanted, else everything ends."""
        if self.window.leaving or not (self._chosen().window.close_to_tray and tray.available()):
            self.leave()
            return
        self.window.hide()
        if not self._kept.tray_told:
            self._kept = replace(self._kept, tray_told=True)
            self.tray.say(tr("Waggle goes on in the background"), tr("Open or quit it here, in the tray."))
        self._remember()

    def _remember(self) -> None:
        if self._memory is None:
            return
        geometry = kept.geometry_text(bytes(self.window.saveGeometry().data()))
        self._kept = replace(self._kept, geometry=geometry, page=self.window.page)
        kept.write(self._memory, self._kept)

    def _changed(self) -> None:
        before, self._told = self._told, self._current.state
        self.tray.show_state(self._told)
        news = notices.notices(before, self._told) if not self.window.isActiveWindow() else []
        wanted = self._chosen().window if news else Settings().window
        for notice in news:
            if wanted.notify_problems if notice.kind == "problems" else wanted.notify_discoveries:
                self.tray.say(notice.title, notice.words)

    def _refused(self, title: str, advice: str) -> None:
        self.window.refused(title, advice)

    def _replay_ended(self, skipped: int) -> None:
        self.window.show_replay(skipped)
