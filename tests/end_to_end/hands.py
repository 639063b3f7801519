"""Finds widgets of a real window by their words, and clicks and types through X."""

import asyncio
import subprocess
import time
from collections.abc import Callable
from typing import TypeVar

from PySide6.QtCore import QPoint, QRect
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QFileDialog,
    QLabel,
    QLineEdit,
    QMenu,
    QScrollArea,
    QWidget,
)

from waggle.gui.application.main_window import MainWindow
from waggle.gui.widgets.text import ElidedLabel

Answer = TypeVar("Answer")
LOOK = 0.03  # seconds between two checks
PATIENCE = 180.0


def window() -> MainWindow:
    """The window that is visible, or else hidden in the tray."""
    windows = [widget for widget in QApplication.allWidgets() if isinstance(widget, MainWindow)]
    return next((candidate for candidate in windows if candidate.isVisible()), windows[-1])


async def until(look: Callable[[], Answer], what: str, seconds: float = PATIENCE) -> Answer:
    """Wait for the first true value of `look`, and return it."""
    deadline = time.monotonic() + seconds
    while not (answer := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {seconds:.0f} s; on screen: {words()}")
        await asyncio.sleep(LOOK)
    return answer


def words() -> str:
    """All visible words, for the message of a failed wait."""
    visible = [widget for widget in QApplication.allWidgets() if widget.isVisible()]
    lines = [widget.text() for widget in visible if isinstance(widget, QAbstractButton | QLabel)]
    return " | ".join([*lines, *(widget.words() for widget in visible if isinstance(widget, ElidedLabel))])[:1500]


def find(name: str, kind: type[QWidget] = QAbstractButton, within: QWidget | None = None) -> QWidget | None:
    """The usable widget on screen with this name."""
    for widget in within.findChildren(kind) if within else QApplication.allWidgets():
        if isinstance(widget, kind) and widget.isVisible() and widget.isEnabled() and widget.window().isVisible():
            text = widget.text() if isinstance(widget, QAbstractButton) else ""
            if name in (text, widget.accessibleName()):
                return widget
    return None


async def click(name: str, kind: type[QWidget] = QAbstractButton, seconds: float = PATIENCE) -> QWidget:
    """Wait for a widget, scroll it into view, and press it."""
    widget = await until(lambda: find(name, kind), f"something to click: {name}", seconds)
    await press(widget)
    return widget


async def press(widget: QWidget, place: QPoint | None = None) -> None:
    parent = widget.parentWidget()
    while parent is not None:
        if isinstance(parent, QScrollArea):
            parent.ensureWidgetVisible(widget)
        parent = parent.parentWidget()
    await settled()
    at(widget.mapToGlobal(place or QRect(0, 0, widget.width(), widget.height()).center()))
    await settled()


async def settled() -> None:
    """Wait until all changes are drawn."""
    for _ in range(4):
        await asyncio.sleep(LOOK)


def at(place: QPoint) -> None:
    """Press the left button at this place."""
    _x("mousemove", "--sync", str(place.x()), str(place.y()))
    _x("click", "1")


async def write(name: str, text: str, kind: type[QWidget] = QLineEdit) -> QWidget:
    """Replace the content of the field with this name."""
    field = await click(name, kind)
    await focus(field)
    key("ctrl+a")
    _x("type", "--delay", "4", text)
    await settled()
    return field


async def focus(widget: QWidget) -> None:
    """Activate the window by hand, because there may be no window manager."""
    _x("windowfocus", "--sync", str(int(widget.window().winId())))
    await until(lambda: widget.window().isActiveWindow(), "the window to be typed into")


def key(chord: str) -> None:
    _x("key", chord)


async def choose(menu_of: str, words_of: str) -> None:
    """Choose the entry of a button's menu that begins with these words."""
    await click(menu_of)
    menu = await until(lambda: QApplication.activePopupWidget(), f"the menu of {menu_of}")
    assert isinstance(menu, QMenu)
    action = next(entry for entry in menu.actions() if entry.text().startswith(words_of))
    at(menu.mapToGlobal(menu.actionGeometry(action).center()))
    await until(lambda: QApplication.activePopupWidget() is None, "the menu to close")


async def pick(box_of: str, words_of: str) -> None:
    """Choose an entry of a combo box."""
    box = await click(box_of, QComboBox)
    assert isinstance(box, QComboBox)
    view = box.view()
    await until(view.isVisible, f"what {box_of} offers")
    await settled()
    place = view.visualRect(box.model().index(box.findText(words_of), 0)).center()
    at(view.viewport().mapToGlobal(place))
    await until(lambda: not view.isVisible(), "the box to close")


async def save_as(path: str) -> None:
    """Answer the dialog that asks where to save."""
    dialog = await until(
        lambda: next(
            (widget for widget in QApplication.allWidgets() if isinstance(widget, QFileDialog) and widget.isVisible()), None
        ),
        "a dialog that asks for a file",
    )
    field = dialog.findChild(QLineEdit)
    assert field is not None
    await press(field)
    await focus(field)
    key("ctrl+a")
    _x("type", "--delay", "4", path)
    key("Return")
    await until(lambda: not _alive(dialog), "the dialog to close")


def _alive(dialog: QWidget) -> bool:
    try:
        return dialog.isVisible()
    except RuntimeError:  # it was deleted on close
        return False


def _x(*arguments: str) -> None:
    subprocess.run(["xdotool", *arguments], check=True, timeout=30)
