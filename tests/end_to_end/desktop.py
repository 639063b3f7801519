"""What is on a virtual screen and in its clipboard: `python desktop.py picture FILE`, `python desktop.py clipboard`."""

import sys

from PySide6.QtGui import QGuiApplication


def main(what: str, file: str = "") -> int:
    application = QGuiApplication([])
    if what == "picture":
        return 0 if application.primaryScreen().grabWindow(0).save(file) else 1
    sys.stdout.write(application.clipboard().text())
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
