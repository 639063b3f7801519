"""Keeps the keyboard focus where it is when the focused control is disabled or hidden: Qt would pass it to some other control."""

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QWidget


class FocusMemory(QObject):
    """The part of the window around the control waits in its place, so that Tab goes on from there and Space presses nothing.

    When the control can be used again, and the focus is still there, it gets the focus back.
    """

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._lost: QWidget | None = None
        self._waiting: QWidget | None = None

    def keep(self) -> bool:
        """Called before the focus moves on. Returns whether it stays, because nobody moved it: its control went away."""
        lost = self._window.focusWidget()
        if lost is None or _can_have_focus(lost):
            return False
        around = lost.parentWidget()
        while around is not None and not _can_have_focus(around):
            around = around.parentWidget()
        if around is None:
            return False
        if lost is not self._waiting:
            self._forget()
            self._lost = lost
            lost.installEventFilter(self)
            lost.destroyed.connect(self._forget_destroyed)
        self._waiting = around
        around.setFocus()
        return True

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.EnabledChange, QEvent.Type.Show) and watched is self._lost:
            lost, waiting = self._lost, self._waiting
            if lost is not None and _can_have_focus(lost):
                self._forget()
                if self._window.focusWidget() is waiting:
                    lost.setFocus()
        return False

    def _forget(self) -> None:
        if self._lost is not None:
            self._lost.removeEventFilter(self)
            self._lost.destroyed.disconnect(self._forget_destroyed)
        self._lost = self._waiting = None

    def _forget_destroyed(self) -> None:
        self._lost = None


def _can_have_focus(widget: QWidget) -> bool:
    return widget.isEnabled() and widget.isVisible()
