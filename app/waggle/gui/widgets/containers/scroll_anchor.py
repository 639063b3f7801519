"""Keeps the place of a person in a view that changes while they read it."""

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QPersistentModelIndex, QPoint, QTimer
from PySide6.QtWidgets import QAbstractItemView, QPlainTextEdit, QScrollArea, QWidget


def is_in_view(widget: QWidget) -> bool:
    """Whether a widget is visible now: on the visible page, and not scrolled away."""
    QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)  # lay out what was just added
    return not widget.visibleRegion().isEmpty()


def show_in_view(area: QScrollArea, widget: QWidget) -> None:
    """Scroll to a widget that was just added or that grew; to its top, if it is taller than the area."""
    QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
    area.ensureWidgetVisible(widget, 0, 8)
    if widget.height() > area.viewport().height():
        top = widget.mapTo(area.viewport(), QPoint(0, 0)).y()
        area.verticalScrollBar().setValue(area.verticalScrollBar().value() + top)


class ScrollAnchor(QObject):
    """Keeps the top visible row of a view in place when rows come or go above it. At the very top, new rows appear."""

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
            return  # the view has not been scrolled back after the first of several changes yet
        scrolled = self._view.verticalScrollBar().value() > 0
        self._top = QPersistentModelIndex(self._view.indexAt(QPoint(4, 4))) if scrolled else QPersistentModelIndex()

    def _wait(self) -> None:
        """Scroll back in the next event: the view learns of the change after this signal."""
        self._later.start(0)

    def _return(self) -> None:
        if self._top.isValid():
            self._view.scrollTo(self._top, QAbstractItemView.ScrollHint.PositionAtTop)


def is_being_read(text: QPlainTextEdit) -> bool:
    """Whether replacing the text would disturb a reader: it has the focus, is scrolled, or has a selection."""
    return text.hasFocus() or text.verticalScrollBar().value() > 0 or text.textCursor().hasSelection()
