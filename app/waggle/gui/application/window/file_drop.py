"""Files of questions and models that are dragged onto the window: an overlay while they are over it, and what was dropped."""

from collections.abc import Mapping, Sequence
from typing import Literal

from PySide6.QtCore import QDir, QEvent, QObject, QRectF, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QPainter, QPen
from PySide6.QtWidgets import QWidget

from waggle.gui.i18n.formatting import later, tr
from waggle.gui.state.inputs.dropped_model import dropped_model
from waggle.gui.state.inputs.invite_link import is_invite_file
from waggle.gui.state.inputs.question_paths import ACCEPTED_FILES, has_known_ending, question_files
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.layout import column, frame, row
from waggle.gui.widgets.painted_widgets import Icon, PaintedWidget
from waggle.gui.widgets.text import text

DropKind = Literal["invite", "model", "questions", "nothing"]
WORDS: Mapping[DropKind, tuple[str, str]] = {  # a title, and what happens next
    "invite": (later("Drop it to look at the invite"), later("You see what the swarm is; nothing is joined until you say so.")),
    "model": (later("Drop it to choose this model"), later("It is checked first. Until then you keep training the present one.")),
    "questions": (later("Drop it to create a swarm"), later("Its questions are shown before anything starts.")),
    "nothing": (later("This cannot be dropped here"), ACCEPTED_FILES),
}
MOST_URLS = 1000  # that are looked at while something is dragged: a whole disk may be


class FileDrop(QObject):
    """Takes what is dropped anywhere on a window. `dropped` carries paths, and what to say about everything else.

    `model_dropped` carries the path or address of a model instead, `invite_dropped` the path of an invite or of a picture.

    Files are taken from the window of the system, before a field under the mouse could take their names as text. Other links come
    here only if no widget takes them: an invite link may be dropped on its field.
    """

    dropped = Signal(object, str)
    model_dropped = Signal(str)
    invite_dropped = Signal(str)

    def __init__(self, window: QWidget, theme: Theme) -> None:
        super().__init__(window)
        self._window = window
        self._overlay = DropOverlay(theme)
        self._overlay.setParent(window)
        self._overlay.hide()
        self._system_window: QObject | None = None
        self._taker: QObject | None = None  # which of the two windows takes what is dragged now
        self.enabled = True
        window.setAcceptDrops(True)
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        match event.type():
            case QEvent.Type.Show | QEvent.Type.WinIdChange if watched is self._window:
                self._watch_system_window()
            case QEvent.Type.Resize if watched is self._window:
                self._overlay.setGeometry(self._window.rect())
            case QEvent.Type.DragEnter if isinstance(event, QDragEnterEvent):
                return self._enter(watched, event)
            case QEvent.Type.DragMove if watched is self._taker and isinstance(event, QDropEvent):
                event.acceptProposedAction()
                return True
            case QEvent.Type.DragLeave if watched is self._taker:
                self._end()
                return True
            case QEvent.Type.Drop if watched is self._taker and isinstance(event, QDropEvent):
                self._end()
                event.acceptProposedAction()
                items = _items(event)
                if _is_invite(items):
                    self.invite_dropped.emit(items[0])
                elif model := dropped_model(items):
                    self.model_dropped.emit(model)
                else:
                    self.dropped.emit(*question_files(items))
                return True
        return False

    def _watch_system_window(self) -> None:
        handle = self._window.windowHandle()
        if handle is not None and handle is not self._system_window:
            self._system_window = handle
            handle.installEventFilter(self)

    def _enter(self, watched: QObject, event: QDragEnterEvent) -> bool:
        urls = event.mimeData().urls()[:MOST_URLS]
        is_taken = bool(urls) and (watched is self._window or any(url.isLocalFile() for url in urls))
        items = _items(event)
        if not (self.enabled and is_taken):
            return False
        self._taker = watched
        event.acceptProposedAction()
        self._overlay.show_over(self._window, _kind(items))
        return True

    def _end(self) -> None:
        self._taker = None
        self._overlay.hide()


class DropOverlay(PaintedWidget):
    """Covers the window while something is dragged over it, and says what happens if it is dropped."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._title = text(theme, "", "title")
        self._words = text(theme, "", "body", "soft", wrap=True)
        for label in (self._title, self._words):
            label.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._words.setMinimumWidth(theme.px(420))
        icon = row(None, Icon(theme, "table", "accent_text", 40), None)
        card = frame("card", column(icon, self._title, self._words, gap=10, margins=(36, 28, 36, 28)))
        self.setLayout(column(None, row(None, card, None), None))

    def show_over(self, window: QWidget, kind: DropKind) -> None:
        title, words = WORDS[kind]
        self._title.setText(tr(title))
        self._words.setText(tr(words))
        self.setGeometry(window.rect())
        self.show()
        self.raise_()

    def draw(self, painter: QPainter, place: QRectF) -> None:
        painter.fillRect(place, self.theme.colour("scrim"))
        painter.setPen(QPen(self.theme.colour("accent"), 3, Qt.PenStyle.DashLine))
        painter.drawRoundedRect(place.adjusted(14, 14, -14, -14), 12, 12)


def _kind(items: Sequence[str]) -> DropKind:
    if _is_invite(items):
        return "invite"
    return "model" if dropped_model(items) else "questions" if any(map(has_known_ending, items)) else "nothing"


def _is_invite(items: Sequence[str]) -> bool:
    return len(items) == 1 and "://" not in items[0] and is_invite_file(items[0])


def _items(event: QDropEvent) -> list[str]:
    """What was dropped: the paths of files, and the links of everything else."""
    urls = event.mimeData().urls()[:MOST_URLS]
    return [QDir.toNativeSeparators(url.toLocalFile()) if url.isLocalFile() else url.toString() for url in urls]
