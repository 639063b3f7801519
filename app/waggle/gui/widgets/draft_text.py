"""What a person has typed and nobody has read yet: it goes along to the same fields of a window that is made anew."""

from PySide6.QtWidgets import QLineEdit, QWidget


def copy_drafts(mine: QWidget, before: QWidget) -> None:
    """Fill the fields of a widget as those of the same widget were before. A secret has to be typed again."""
    fields, others = (widget.findChildren(QLineEdit) for widget in (mine, before))
    for field, other in zip(fields, others, strict=True):
        if other.echoMode() == QLineEdit.EchoMode.Normal:
            field.setText(other.text())
