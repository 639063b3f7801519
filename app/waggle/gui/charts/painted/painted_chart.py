"""A chart that is painted here, not by pyqtgraph: it tells in a tooltip what is at the pointer."""

from PySide6.QtCore import QEvent, QPointF
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QToolTip

from waggle.gui.i18n.formatting import tooltip_text
from waggle.gui.widgets.painted_widgets import PaintedWidget


class PaintedChart(PaintedWidget):
    """Subclasses implement `draw` and `words_at`."""

    def words_at(self, point: QPointF) -> str:
        """What is drawn at this point, in words; empty where nothing is."""
        raise NotImplementedError

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), tooltip_text(self.words_at(QPointF(event.pos()))), self)
            return True
        return super().event(event)
