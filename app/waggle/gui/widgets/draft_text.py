"""Text that a person typed and did not submit yet: a rebuilt window takes it over."""

from PySide6.QtWidgets import QLineEdit, QWidget


def copy_drafts(mine: QWidget, before: QWidget) -> None:
    """Copy the text of all fields from the same widget of the window before. Secrets are not copied."""
    fields, others = (widget.findChildren(QLineEdit) for widget in (mine, before))
    for field, other in zip(fields, others, strict=True):
        if other.echoMode() == QLineEdit.EchoMode.Normal:
            field.setText(other.text())
