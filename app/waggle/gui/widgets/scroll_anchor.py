"""Keeps the place of a person in a view that changes while they read it."""

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QPersistentModelIndex, QPoint, QTimer
from PySide6.QtWidgets import QAbstractItemView, QPlainTextEdit, QWidget


def is_in_view(widget: QWidget) -> bool:
    """Whether this stands before a person now: on the page that is seen, and not scrolled away."""
    QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)  # what came a moment ago gets its place first
    return not widget.visibleRegion().isEmpty()


class ScrollAnchor(QObject):
    """The row at the top of a view stays there when rows come or go above it; who looks at the newest sees the newest."""

    def __init__(self, view: QAbstractItemView) -> None:
        super().__init__(view)
        self._view, self._top = view, QPersistentModelIndex()
        model = view.model()
        for about_to, done in (
            (model.rowsAboutToBeInserted, model.rowsInserted),
            (model.rowsAboutToBeRemoved, model.rowsRemoved),
        ):
            about_to.connect(self._mark)
            done.connect(self._wait)
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.timeout.connect(self._return)

    def _mark(self) -> None:
        if self._later.isActive():
            return  # the view still stands where it did before the first of them
        scrolled = self._view.verticalScrollBar().value() > 0
        self._top = QPersistentModelIndex(self._view.indexAt(QPoint(4, 4))) if scrolled else QPersistentModelIndex()

    def _wait(self) -> None:
        """Until the view knows of them."""
        self._later.start(0)

    def _return(self) -> None:
        if self._top.isValid():
            self._view.scrollTo(self._top, QAbstractItemView.ScrollHint.PositionAtTop)


def is_being_read(text: QPlainTextEdit) -> bool:
    """Whether putting other words in its place would disturb somebody."""
    return text.hasFocus() or text.verticalScrollBar().value() > 0 or text.textCursor().hasSelection()
