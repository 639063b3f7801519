"""Builds the pages that were not opened yet while the person does nothing, so that a first opening is as quick as a later one."""

import importlib
import threading

from PySide6.QtCore import QElapsedTimer, QEvent, QObject, QTimer
from PySide6.QtWidgets import QWidget

from waggle.gui.application.window.page_stack import PageStack
from waggle.gui.pages import PAGES

CHARTS = "waggle.gui.charts.plotted.progress_charts"  # with pyqtgraph and numpy
EVERY_MS = 250  # one page at a time
QUIET_MS = 700  # after the window was shown, and after a key or a click
INPUT = (QEvent.Type.KeyPress, QEvent.Type.MouseButtonPress, QEvent.Type.Wheel)


class BuildAhead(QObject):
    """Starts when the window is shown. The libraries of the charts are imported in a thread, the pages built in this one."""

    def __init__(self, window: QWidget, pages: PageStack) -> None:
        super().__init__(window)
        self._window, self._pages = window, pages
        self._imports = threading.Thread(target=_import_charts, name="import charts", daemon=True)
        self._quiet = QElapsedTimer()
        self._timer = QTimer(self)
        self._timer.setInterval(EVERY_MS)
        self._timer.timeout.connect(self._build_next)
        window.installEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        if event.type() in INPUT:
            self._quiet.start()
        elif event.type() == QEvent.Type.Show and not self._timer.isActive():
            self._watch(on=True)
            self._quiet.start()
            self._timer.start()
        return False

    def _watch(self, *, on: bool) -> None:
        """Watch the window, and its handle, to which all input comes that a child accepts."""
        for watched in (self._window, self._window.windowHandle()):
            if watched is not None:
                watched.removeEventFilter(self)
                if on:
                    watched.installEventFilter(self)

    def _build_next(self) -> None:
        if self._quiet.elapsed() < QUIET_MS or not self._window.isVisible():
            return
        if self._imports.ident is None:
            self._imports.start()
        elif not self._imports.is_alive():
            name = next((name for name in PAGES if name not in self._pages.built), "")
            self._timer.stop()  # and it stays so if a page cannot be built, which is said once
            if name:
                self._pages.build(name).prepare()
                self._timer.start()
            else:
                self._watch(on=False)


def _import_charts() -> None:
    try:
        importlib.import_module(CHARTS)
    except (ImportError, OSError):  # Waggle's files were moved or replaced: opening the page will report it
        return
