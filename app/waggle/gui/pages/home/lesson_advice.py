"""What Home says while nothing is learned: why, and a link for each remedy."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from waggle.gui.i18n.formatting import tr
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.responsive_row import ResponsiveRow
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.layout import FLUSH, column, row
from waggle.gui.widgets.painted_widgets import sign_column
from waggle.gui.widgets.text import text
from waggle.protocol.text.lesson_diagnosis import Diagnosis


class LessonAdvice(QWidget):
    """Hidden while the model learns. `page_wanted` carries the page of a remedy and its part."""

    page_wanted = Signal(str, str)

    def __init__(self, theme: Theme, wide: int, beside: int) -> None:
        """`wide` and `beside`: pixels of the column with the sign, and between it and the text."""
        super().__init__()
        self._theme = theme
        self._diagnosis: Diagnosis | None = None
        self._says = text(theme, "", "small", "soft", wrap=True)
        self._links = QWidget()
        self._line = row(FLUSH, (self._links, 1), gap=0)
        sign = sign_column(theme, "warn", "text_soft", wide)
        self.setLayout(row(sign, (column(self._says, self._line, gap=2), 1), gap=beside, margins=(0, 8, 0, 0)))
        self.hide()

    def show_diagnosis(self, why: Diagnosis | None) -> None:
        """Show it, or nothing for None."""
        if why == self._diagnosis:
            return
        self._diagnosis = why
        self.setVisible(why is not None)
        if why is None:
            return
        self._says.setText(tr(why.says))
        links = [Button(self._theme, tr(remedy.says), "link") for remedy in why.remedies]
        for link, remedy in zip(links, why.remedies, strict=True):
            link.clicked.connect(lambda _on=False, remedy=remedy: self.page_wanted.emit(remedy.page, remedy.part))
        before, self._links = self._links, ResponsiveRow(*links)
        self._links.set_gap(16)
        self._line.replaceWidget(before, self._links)
        before.hide()
        before.deleteLater()
