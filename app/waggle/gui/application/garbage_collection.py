"""Run garbage collection on the GUI thread only, between two events.

Python collects in whichever thread allocates, in the middle of any call. Qt allows neither: a QTimer must be destroyed in its
own thread ("Timers cannot be stopped from another thread"), and no widget may be destroyed while PySide copies Qt's list of all
widgets.
"""

import gc

from PySide6.QtCore import QObject, QTimer

EVERY_MS = 1000


class GarbageCollector(QObject):
    """Replaces Python's automatic collector for the life of the process."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        gc.disable()
        timer = QTimer(self)
        timer.timeout.connect(collect_due)
        timer.start(EVERY_MS)


def collect_due() -> None:
    """Collect the oldest generation above Python's own threshold, if any is."""
    due = [age for age, (grown, most) in enumerate(zip(gc.get_count(), gc.get_threshold(), strict=True)) if grown > most]
    if due:
        gc.collect(due[-1])


def freeze_long_lived() -> None:
    """Exempt modules and the window from collection: they live as long as the process, and scanning them takes three frames."""
    gc.freeze()
