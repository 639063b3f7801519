"""A real window that reports where its widgets are, so that another process can click them. It takes the arguments of `waggle`.

One JSON line in, one out: {"where": name} returns the centre of a widget on the screen, {"words": name} the content of a field,
{"picture": file} saves the window as a picture.
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
    """Answers on the GUI thread."""

    line_read = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.line_read.connect(self._answer)

    def listen(self) -> None:
        for line in sys.stdin:
            self.line_read.emit(line)

    def _answer(self, line: str) -> None:
        match json.loads(line):
            case {"where": name}:
                reply = next(({"x": at.x(), "y": at.y()} for at in places(name)), {})
            case {"words": name}:
                reply = {"words": next((each.text() for each in visible(QLineEdit) if each.accessibleName() == name), "")}
            case {"picture": file}:
                for _ in range(4):  # layouts settle in the second pass
                    QApplication.processEvents()
                reply = {"saved": next(each for each in visible(MainWindow)).grab().save(file, quality=0)}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


def visible(kind: type) -> list:
    return [each for each in QApplication.allWidgets() if isinstance(each, kind) and each.isVisible()]


def places(name: str) -> Iterator[QPoint]:
    """The centres of usable buttons and fields with this name, and of the check boxes of list rows that begin with it."""
    for each in (*visible(QAbstractButton), *visible(QLineEdit)):
        words = (each.accessibleName(), each.text() if isinstance(each, QAbstractButton) else "")
        if name in words and each.isEnabled() and not each.visibleRegion().isEmpty():
            yield each.mapToGlobal(each.visibleRegion().boundingRect().center())
    for each in visible(QListView):
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
