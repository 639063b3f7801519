"""A person's place in what they read: it is kept while more comes."""

from PySide6.QtCore import QObject, QPersistentModelIndex, QPoint, QTimer
from PySide6.QtWidgets import QAbstractItemView, QPlainTextEdit


class Place(QObject):
    """The row that stands at the top of a view stays there when rows come above it; who looks at the newest sees the newest."""

    def __init__(self, view: QAbstractItemView) -> None:
        super().__init__(view)
        self._view, self._top = view, QPersistentModelIndex()
        view.model().rowsAboutToBeInserted.connect(self._mark)
        view.model().rowsInserted.connect(self._wait)
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.timeout.connect(self._return)

    def _mark(self) -> None:
        scrolled = self._view.verticalScrollBar().value() > 0
        self._top = QPersistentModelIndex(self._view.indexAt(QPoint(4, 4))) if scrolled else QPersistentModelIndex()

    def _wait(self) -> None:
        """Until the view knows of them."""
        self._later.start(0)

    def _return(self) -> None:
        if self._top.isValid():
            self._view.scrollTo(self._top, QAbstractItemView.ScrollHint.PositionAtTop)


def being_read(text: QPlainTextEdit) -> bool:
    """Whether putting other words in its place would disturb somebody."""
    return text.hasFocus() or text.verticalScrollBar().value() > 0 or text.textCursor().hasSelection()
