"""A low bar without words: how much of a download, or of a test, is done."""

from PySide6.QtWidgets import QProgressBar

HIGH, WHOLE = 8, 1000  # pixels; the value of a full bar


class PartBar(QProgressBar):
    """A screen reader says `name`, and the share that is done."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setTextVisible(False)
        self.setFixedHeight(HIGH)
        self.setAccessibleName(name)
        self.setRange(0, WHOLE)

    def show_part(self, done: int, total: int) -> None:
        """Fill it by this share. `total` 0: not known, so it only shows that work goes on."""
        self.setRange(0, WHOLE if total else 0)
        self.setValue(round(WHOLE * done / total) if total else 0)
