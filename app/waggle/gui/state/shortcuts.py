"""Keyboard shortcuts, and how this system writes them; both the bindings and the Help page use these."""

import sys

from PySide6.QtGui import QKeySequence

QUIT, CLOSE, PAUSE, FIND, BLOCK = "Ctrl+Q", "Ctrl+W", "Ctrl+P", "Ctrl+F", "Ctrl+B"
MUTE = "Ctrl+Shift+M" if sys.platform == "darwin" else "Ctrl+M"  # macOS minimises a window with Command+M


PAGES = 9  # the first pages that have a shortcut: there is no key 10


def page(place: int) -> str:
    """The shortcut of a page, counted from 1 to PAGES."""
    return f"Ctrl+{place}"


def native_text(*keys: str) -> str:
    """ "Ctrl+M, Ctrl+B", in the notation of the system and the window's language."""
    return ", ".join(QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText) for key in keys)
