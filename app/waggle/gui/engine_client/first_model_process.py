"""Which real model this computer can train well, as a process that measures the computer: torch has no place in the window."""

from PySide6.QtCore import QObject, Signal

from waggle.core import paths
from waggle.gui.engine_client.line_process import LineProcess
from waggle.protocol.events_models import ModelOffer, read_first_model


class FirstModelProcess(QObject):
    """`offered` carries a ModelOffer, if there is such a model. A failure is no news: then none is offered."""

    offered = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._program = LineProcess(self)
        self._program.line.connect(self._emit_offer)

    def start(self) -> None:
        self._program.start([*paths.module_command("waggle"), "model", "first"])

    def stop(self) -> None:
        """Kill it; `offered` does not follow."""
        self._program.stop()

    def _emit_offer(self, line: bytes) -> None:
        offer: ModelOffer | None = read_first_model(line)
        if offer is not None:
            self.offered.emit(offer)
