"""Adds the widgets of textual, which it imports by name."""

from PyInstaller.utils.hooks import collect_submodules

hiddenimports = collect_submodules("textual.widgets")
