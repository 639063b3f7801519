"""Lays a page out before it is painted: Qt would paint it first, and then move its parts in the next turns of the event loop."""

from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtWidgets import QAbstractItemView, QWidget

PASSES = 3  # a row that folds changes the height of what is around it, and a scroll bar its width


def settle(page: QWidget) -> None:
    """`page` is visible and was not painted yet."""
    for part in page.findChildren(QWidget):
        if part.isHidden() and not part.testAttribute(Qt.WidgetAttribute.WA_WState_ExplicitShowHide):
            _show_now(part)
        elif isinstance(part, QAbstractItemView) and part.isVisible():
            part.doItemsLayout()
    for _ in range(PASSES):
        QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)


def _show_now(part: QWidget) -> None:
    """Show what was added to a visible layout: Qt would do so in a later turn."""
    parent = part.parentWidget()
    if parent is not None and parent.isVisible() and parent.layout() is not None and not part.isWindow():
        part.show()
