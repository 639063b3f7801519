"""Who collects garbage in the window's process: its own thread alone, between two of its events.

Python collects in whichever thread happens to ask for memory, in the midst of whatever it does. Qt bears neither: a timer held by
nothing but garbage must end in its own thread, and no widget may end while Qt's list of all widgets is made into one of Python's.
"""

import gc

from PySide6.QtCore import QObject, QTimer

EVERY_MS = 1000


class GarbageCollector(QObject):
    """Takes the place of Python's own collector, for as long as the process lives."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        gc.disable()
        timer = QTimer(self)
        timer.timeout.connect(collect_due)
        timer.start(EVERY_MS)


def collect_due() -> None:
    """Collect the oldest generation that has outgrown Python's own threshold, if one has."""
    due = [age for age, (grown, most) in enumerate(zip(gc.get_count(), gc.get_threshold(), strict=True)) if grown > most]
    if due:
        gc.collect(due[-1])


def freeze_long_lived() -> None:
    """Modules and the window live as long as the process: to look through them for garbage would take three frames each time."""
    gc.freeze()
