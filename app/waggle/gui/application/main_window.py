"""The main window: pages, notices, and what happens to commands that no engine carries out."""

from PySide6.QtCore import QEvent, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QShowEvent

from waggle.gui.application.page_window import SMALLEST, PageWindow
from waggle.gui.i18n.formatting import tr, tr_sentence
from waggle.gui.pages.context import PageContext
from waggle.gui.widgets.text import announce
from waggle.protocol.commands import AnyCommand, ListModels, ListSwarms, OfferTalk, PoseQuestion, QueryDays, QueryHistory

__all__ = ["SMALLEST", "MainWindow"]

NOTICE_MS, LETTER_MS = 8000, 70  # the least time that a notice stays, and the time to read each of its letters
AUTOMATIC_QUERIES = (ListModels, ListSwarms, OfferTalk, PoseQuestion, QueryDays, QueryHistory)  # pages send them again


class MainWindow(PageWindow):
    """`closing`: the person closed the window; `unseen` carries a notice while the window is hidden."""

    closing = Signal()
    unseen = Signal(str)

    def __init__(self, context: PageContext) -> None:
        super().__init__(context)
        self.leaving = False
        self._notice_end = QTimer(self)
        self._notice_end.setSingleShot(True)
        self._notice_end.timeout.connect(self._end_notice)
        self.noticed.connect(self.notice)
        self._choices.refused.connect(self.refused)

    def notice(self, words: str, sign: str = "warn") -> None:
        """Show a notice in the status bar for as long as it takes to read; `sign` as in `StatusBar.notice`."""
        self.status.notice(words, sign)
        announce(self, words)
        self._notice_end.start(max(NOTICE_MS, LETTER_MS * len(words)))
        if not self.is_seen():
            self.unseen.emit(words)

    def _end_notice(self) -> None:
        if self.status.is_read():
            self._notice_end.start(NOTICE_MS)
        elif self.is_seen():
            self.status.notice("")

    def _show_notice_again(self) -> None:
        """A notice from while the window was hidden stays for the usual time from now."""
        if not self.leaving:
            self._notice_end.start(NOTICE_MS)

    def refused(self, title: str, advice: str, command: str = "") -> None:
        """Show that the command with this id was refused."""
        self._say_refused(f"{tr_sentence(title)} {tr_sentence(advice)}".strip(), command)

    def unheard(self, command: AnyCommand) -> None:
        """Show that no engine took the command; silent for the queries of pages, which repeat by themselves."""
        if isinstance(command, AUTOMATIC_QUERIES) or (not self._replay and self.pages.postpone(command.id)):
            return
        recorded, dead = tr("This is a recorded run: nothing was done."), tr("The engine is not running: nothing was done.")
        self._say_refused(recorded if self._replay else dead, command.id)

    def _say_refused(self, words: str, command: str) -> None:
        """Show it once: where the person asked, if that is visible, else as a notice."""
        if self.pages.refused(words, command) and self.is_seen():
            announce(self, words)
        else:
            self.notice(words)

    def show_replay(self, skipped: int = 0, *, example: bool = False, over: bool = False) -> None:
        """Mark the window as a replay for good; `over`: the recording has ended; `skipped`: lines of other versions."""
        if over:
            words = tr("Example, recorded: it has ended") if example else tr("Replay of a recorded run: it has ended")
        else:
            words = tr("Example: a real swarm of two, recorded") if example else tr("Replay of a recorded run")
        if skipped:
            words += tr(", %1 unknown lines skipped").replace("%1", str(skipped))
        self._replay = True
        self.status.mark(words)
        self.pages.show_replay(over=over)
        self.setWindowTitle(f"Waggle: {words}")

    def show_leaving(self) -> None:
        """Show that the engine is stopping, until it has."""
        self.leaving = True
        self.setWindowTitle(tr("Waggle: closing"))
        goes_on = self._current.state.service and not self._replay
        self.notice(tr("Closing; the engine goes on.") if goes_on else tr("Finishing this step, then closing."), "")
        self._notice_end.stop()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._show_notice_again()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.WindowStateChange:
            self.redraw()  # no longer minimised: catch up
            self._show_notice_again()

    def closeEvent(self, event: QCloseEvent) -> None:
        """The controller decides what closing means: hide in the tray, or shut down after the engine has stopped."""
        event.ignore()
        self.closing.emit()
