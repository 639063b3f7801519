"""The text field of an invite link, as both inviting and joining show it."""

from PySide6.QtWidgets import QLineEdit

from waggle.gui.theme.theme import Theme


def link_field(theme: Theme, name: str) -> QLineEdit:
    edit = QLineEdit()
    edit.setFont(theme.font("mono"))
    edit.setAccessibleName(name)
    edit.setFixedHeight(theme.size["control"])
    return edit
