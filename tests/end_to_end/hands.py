"""A person's eyes and hands at a real window: what is on screen is found by its words, then clicked and typed through X."""

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

Seen = TypeVar("Seen")
LOOK = 0.03  # seconds between two looks
PATIENCE = 180.0


def window() -> MainWindow:
    """The one that is open, or hidden in the tray."""
    made = [one for one in QApplication.allWidgets() if isinstance(one, MainWindow)]
    return next((one for one in made if one.isVisible()), made[-1])


async def until(seen: Callable[[], Seen], what: str, seconds: float = PATIENCE) -> Seen:
    """The first true answer."""
    deadline = time.monotonic() + seconds
    while not (found := seen()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {seconds:.0f} s; on screen: {words()}")
        await asyncio.sleep(LOOK)
    return found


def words() -> str:
    """What can be read at the moment, for whoever asks why something was not found."""
    shown = [one for one in QApplication.allWidgets() if one.isVisible()]
    lines = [one.text() for one in shown if isinstance(one, QAbstractButton | QLabel)]
    return " | ".join([*lines, *(one.words() for one in shown if isinstance(one, ElidedLabel))])[:1500]


def find(name: str, kind: type[QWidget] = QAbstractButton, within: QWidget | None = None) -> QWidget | None:
    """What is on screen under this name and can be used."""
    for one in within.findChildren(kind) if within else QApplication.allWidgets():
        if isinstance(one, kind) and one.isVisible() and one.isEnabled() and one.window().isVisible():
            text = one.text() if isinstance(one, QAbstractButton) else ""
            if name in (text, one.accessibleName()):
                return one
    return None


async def click(name: str, kind: type[QWidget] = QAbstractButton, seconds: float = PATIENCE) -> QWidget:
    """Wait for it, bring it into view, and press it."""
    found = await until(lambda: find(name, kind), f"something to click: {name}", seconds)
    await press(found)
    return found


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
    """Until what has happened is drawn."""
    for _ in range(4):
        await asyncio.sleep(LOOK)


def at(place: QPoint) -> None:
    """Press the left button there."""
    _x("mousemove", "--sync", str(place.x()), str(place.y()))
    _x("click", "1")


async def write(name: str, text: str, kind: type[QWidget] = QLineEdit) -> QWidget:
    """Into the field of this name, in place of what stands there."""
    field = await click(name, kind)
    await focus(field)
    key("ctrl+a")
    _x("type", "--delay", "4", text)
    await settled()
    return field


async def focus(widget: QWidget) -> None:
    """Where no window manager does it, whoever types chooses the window first."""
    _x("windowfocus", "--sync", str(int(widget.window().winId())))
    await until(lambda: widget.window().isActiveWindow(), "the window to be typed into")


def key(chord: str) -> None:
    _x("key", chord)


async def choose(menu_of: str, words_of: str) -> None:
    """An entry of the menu that a button opens, by how it begins."""
    await click(menu_of)
    menu = await until(lambda: QApplication.activePopupWidget(), f"the menu of {menu_of}")
    assert isinstance(menu, QMenu)
    action = next(one for one in menu.actions() if one.text().startswith(words_of))
    at(menu.mapToGlobal(menu.actionGeometry(action).center()))
    await until(lambda: QApplication.activePopupWidget() is None, "the menu to close")


async def pick(box_of: str, words_of: str) -> None:
    """One of the few that a box offers."""
    box = await click(box_of, QComboBox)
    assert isinstance(box, QComboBox)
    view = box.view()
    await until(view.isVisible, f"what {box_of} offers")
    await settled()
    place = view.visualRect(box.model().index(box.findText(words_of), 0)).center()
    at(view.viewport().mapToGlobal(place))
    await until(lambda: not view.isVisible(), "the box to close")


async def save_as(path: str) -> None:
    """In the dialog that asks where to."""
    dialog = await until(
        lambda: next((one for one in QApplication.allWidgets() if isinstance(one, QFileDialog) and one.isVisible()), None),
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
    except RuntimeError:  # it was deleted when it was closed
        return False


def _x(*arguments: str) -> None:
    subprocess.run(["xdotool", *arguments], check=True, timeout=30)
