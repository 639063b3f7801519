"""The tray icon: shows the status sentence, with a menu to pause, resume, open the window and quit."""

import sys
import time
from collections.abc import Callable

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

from waggle.gui.i18n.formatting import tr, visible
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls import pause_menu
from waggle.gui.widgets.system_tray import logo_icon
from waggle.protocol.commands import Resume, new_id
from waggle.protocol.state import State
from waggle.protocol.text import pauses
from waggle.protocol.text.status_text import sentence

LONGEST_TIP = 120  # characters: Windows cuts at 127
Trigger = QSystemTrayIcon.ActivationReason


class TrayIcon(QObject):
    """`host`: the computer of the engine, empty for this one; `clock_now`: the unix time by its clock.

    `raised`: show the window; `commanded` carries a command for the engine; `leave_wanted`: quit.
    """

    raised = Signal()
    commanded = Signal(object)
    leave_wanted = Signal()

    def __init__(
        self, theme: Theme, parent: QObject | None = None, host: str = "", clock_now: Callable[[], float] = time.time
    ) -> None:
        super().__init__(parent)
        self._host, self._clock_now = visible(host), clock_now
        self._icons = {awake: logo_icon(theme, awake=awake) for awake in (True, False)}
        self.icon = QSystemTrayIcon(self._icons[False], self)
        self.menu = QMenu()
        self._says = QAction(self.menu)
        self._says.setEnabled(False)
        self._open = QAction(tr("Open Waggle"), self.menu)
        self._pause = QAction(tr("Pause"), self.menu)
        self._resume = QAction(tr("Resume"), self.menu)
        self._for = QMenu(tr("Pause for a while"), self.menu)
        self._leave = QAction(tr("Quit"), self.menu)
        self._fill_menu()
        self._awake: bool | None = None
        self.icon.setContextMenu(self.menu)
        self.icon.activated.connect(self._open_on_click)
        self.icon.messageClicked.connect(self.raised)
        self._open.triggered.connect(self.raised)
        self._pause.triggered.connect(lambda: self.commanded.emit(pauses.at_once()))
        self._resume.triggered.connect(lambda: self.commanded.emit(Resume(id=new_id())))
        self._leave.triggered.connect(self.leave_wanted)

    def _fill_menu(self) -> None:
        self.menu.addAction(self._says)
        self.menu.addSeparator()
        self.menu.addAction(self._open)
        self.menu.addAction(self._resume)
        self.menu.addAction(self._pause)
        self.menu.addMenu(self._for)
        self.menu.addSeparator()
        self.menu.addAction(self._leave)
        pause_menu.fill(self._for, self.commanded.emit, self._clock_now)

    def show(self) -> None:
        self.icon.show()

    def hide(self) -> None:
        self.icon.hide()

    def show_questions(self) -> None:
        """At the first start: say that the welcome questions come first, and hide pause and resume."""
        says = tr("A few questions come first, in the window.")
        self._says.setText(says)
        self._set_tooltip(f"Waggle: {says}")
        for action in (self._resume, self._pause, self._for.menuAction()):
            action.setVisible(False)

    def show_state(self, state: State) -> None:
        status = sentence(state)
        there = f"{self._host}: " if self._host else ""
        self._says.setText(f"{there}{tr(status.word)}: {tr(status.says)}".replace("&", "&&"))
        self._set_tooltip(tooltip(state, self._host))
        self._leave.setText(tr("Quit; training keeps running") if state.service else tr("Quit"))
        self._resume.setVisible(status.action == "resume")
        self._pause.setVisible(status.action in ("pause", "pause_now", "anyway"))
        self._for.menuAction().setVisible(status.action in ("pause", "anyway"))
        awake = state.phase in ("contributing", "finishing")
        if awake != self._awake:
            self._awake = awake
            self.icon.setIcon(self._icons[awake])

    def _set_tooltip(self, words: str) -> None:
        """Set the tooltip only if it changed: the desktop is notified of every call."""
        if self.icon.toolTip() != words:
            self.icon.setToolTip(words)

    def notify(self, title: str, words: str) -> None:
        """Show a desktop notification, where the system supports them."""
        if self.icon.isVisible():
            self.icon.showMessage(without_markup(title), without_markup(words), self._icons[True])

    def _open_on_click(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        """A click shows the window, except on macOS, where it opens the menu."""
        if sys.platform != "darwin" and reason in (Trigger.Trigger, Trigger.DoubleClick):
            self.raised.emit()


def without_markup(words: str) -> str:
    """The words with every "<" replaced: tooltips and notifications may parse markup, and names come from strangers."""
    return words.replace("<", "‹")


def tooltip(state: State, host: str = "") -> str:
    """The status sentence of the engine on a computer, with its detail where it fits into a tooltip."""
    status = sentence(state)
    name = tr("Waggle on %1").replace("%1", host) if host else "Waggle"
    short = f"{name}: {tr(status.says)}"
    whole = f"{short} {tr(status.detail)}"
    return without_markup(whole if len(whole) <= LONGEST_TIP else short[:LONGEST_TIP])
