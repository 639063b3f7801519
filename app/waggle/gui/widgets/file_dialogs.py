"""Files that a person chooses, and names for them that overwrite nothing which nobody was asked about."""

from collections.abc import Callable, Collection
from itertools import chain, count
from pathlib import Path

from PySide6.QtCore import QDir, QStandardPaths, Qt
from PySide6.QtWidgets import QFileDialog, QWidget


def file_dialog(parent: QWidget, title: str, then: Callable[[str], object], *, saves: str = "") -> QFileDialog:
    """To be opened, without a nested loop: `then` hears the path that is chosen. `saves` is the name offered for a new file."""
    dialog = QFileDialog(parent, title)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    if dialog.directory() == QDir.current():  # no dialog was open before, and where Waggle was started nobody keeps files
        dialog.setDirectory(_own_files())
    if saves:
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.selectFile(saves)
    dialog.fileSelected.connect(then)
    return dialog


def _own_files() -> str:
    places = QStandardPaths.StandardLocation
    documents = QStandardPaths.writableLocation(places.DocumentsLocation)
    return documents if Path(documents).is_dir() else QStandardPaths.writableLocation(places.HomeLocation)


def renamed(path: Path, ending: str, known: Collection[str]) -> Path:
    """The file with this ending instead of its own, where that is one of those known: a full stop may be a name's or a date's."""
    stem = path.stem if path.suffix.lower() in known else path.name
    return path.with_name(stem + ending)


def ended(path: Path, ending: str, known: Collection[str]) -> Path:
    """A name that a person wrote, with this ending where it has none of those known."""
    return path if path.suffix.lower() in known else unused(renamed(path, ending, known))


def unused(path: Path) -> Path:
    """This path, or one with a number where such a file is there: for a name that no dialog has asked about."""
    numbered = (path.with_stem(f"{path.stem}-{number}") for number in count(2))
    return next(candidate for candidate in chain((path,), numbered) if not candidate.exists())
