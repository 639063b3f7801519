"""The place of the pages in the window: scrolls them where the window is smaller than a page can be."""

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea

from waggle.gui.application.window.page_stack import PageStack


class PageArea(QScrollArea):
    """Pages scroll by themselves where they can, so this rarely has to; rail and status bar never move.

    `set_least_width`: the width in pixels that every page fits into.
    """

    def __init__(self, pages: PageStack) -> None:
        super().__init__()
        self._pages, self._least = pages, 0
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidget(pages)
        pages.currentChanged.connect(self._fit)
        pages.installEventFilter(self)

    def set_least_width(self, width: int) -> None:
        self._least = width
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest and watched is self._pages:
            self._fit()
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        page = self._pages.currentWidget()
        if page is not None:
            self._pages.resize(self.viewport().size().expandedTo(QSize(self._least, page.minimumSizeHint().height())))
