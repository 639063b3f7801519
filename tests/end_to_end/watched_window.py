"""A real window that tells where its parts stand, so that a hand outside can click them. It takes what `waggle` takes.

One JSON line in, one out: {"where": name} gives the middle of a part on the screen, {"words": name} what stands in a field,
{"picture": file} saves the window as it looks now.
"""

import json
import sys
import threading
from collections.abc import Iterator

from PySide6.QtCore import QObject, QPoint, Signal
from PySide6.QtWidgets import QAbstractButton, QApplication, QLineEdit, QListView

from waggle.cli import main
from waggle.gui.application.main_window import MainWindow


class Watch(QObject):
    """Answers in the window's own thread."""

    asked = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.asked.connect(self._answer)

    def listen(self) -> None:
        for line in sys.stdin:
            self.asked.emit(line)

    def _answer(self, line: str) -> None:
        match json.loads(line):
            case {"where": name}:
                said = next(({"x": at.x(), "y": at.y()} for at in places(name)), {})
            case {"words": name}:
                said = {"words": next((each.text() for each in shown(QLineEdit) if each.accessibleName() == name), "")}
            case {"picture": file}:
                for _ in range(4):  # layouts settle in the second pass
                    QApplication.processEvents()
                said = {"saved": next(each for each in shown(MainWindow)).grab().save(file, quality=0)}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


def shown(kind: type) -> list:
    return [each for each in QApplication.allWidgets() if isinstance(each, kind) and each.isVisible()]


def places(name: str) -> Iterator[QPoint]:
    """The middles of buttons and fields of this name that can be used now, and the boxes of rows that begin with it."""
    for each in (*shown(QAbstractButton), *shown(QLineEdit)):
        words = (each.accessibleName(), each.text() if isinstance(each, QAbstractButton) else "")
        if name in words and each.isEnabled() and not each.visibleRegion().isEmpty():
            yield each.mapToGlobal(each.visibleRegion().boundingRect().center())
    for each in shown(QListView):
        for row in range(each.model().rowCount()):
            index = each.model().index(row, 0)
            if index.data().startswith(name):
                each.scrollTo(index)
                yield each.viewport().mapToGlobal(
                    each.visualRect(index).topLeft() + QPoint(11, each.visualRect(index).height() // 2)
                )


if __name__ == "__main__":
    watch = Watch()
    threading.Thread(target=watch.listen, daemon=True).start()
    sys.exit(main.main(sys.argv[1:]))
