"""The keys that do something, and how this system writes them. What Help promises is what is bound."""

import sys

from PySide6.QtGui import QKeySequence

QUIT, CLOSE, PAUSE, FIND, BLOCK = "Ctrl+Q", "Ctrl+W", "Ctrl+P", "Ctrl+F", "Ctrl+B"
MUTE = "Ctrl+Shift+M" if sys.platform == "darwin" else "Ctrl+M"  # there Command and M make a window small


def page(place: int) -> str:
    """The key of a page, counted from 1."""
    return f"Ctrl+{place}"


def native_text(*keys: str) -> str:
    """ "Ctrl+M, Ctrl+B"; with Command's sign on a Mac, and as the keyboard has it in the window's language."""
    return ", ".join(QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText) for key in keys)
