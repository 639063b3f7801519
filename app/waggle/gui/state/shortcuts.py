"""Keyboard shortcuts, and how this system writes them; both the bindings and the Help page use these."""

import sys

from PySide6.QtGui import QKeySequence

QUIT, CLOSE, PAUSE, FIND, BLOCK = "Ctrl+Q", "Ctrl+W", "Ctrl+P", "Ctrl+F", "Ctrl+B"
USUAL = {"settings": "Ctrl+,", "help": "F1"}  # the keys that other programs have for these pages
MUTE = "Ctrl+Shift+M" if sys.platform == "darwin" else "Ctrl+M"  # macOS minimises a window with Command+M


PAGES = 10  # the first pages that have a shortcut: there are no more digits


def page(place: int) -> str:
    """The shortcut of a page, counted from 1 to PAGES; the tenth has the key 0, which stands after 9."""
    return f"Ctrl+{place % PAGES}"


def native_text(*keys: str) -> str:
    """ "Ctrl+M, Ctrl+B", in the notation of the system and the window's language."""
    return ", ".join(QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText) for key in keys)
