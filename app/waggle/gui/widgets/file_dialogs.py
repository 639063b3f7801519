"""File dialogs, and file names that overwrite nothing without a question."""

from collections.abc import Callable, Collection
from itertools import chain, count
from pathlib import Path

from PySide6.QtCore import QDir, QStandardPaths, Qt
from PySide6.QtWidgets import QFileDialog, QWidget


def file_dialog(parent: QWidget, title: str, then: Callable[[str], object], *, saves: str = "") -> QFileDialog:
    """A dialog for the caller to open (no nested event loop); `then` gets the path. `saves` suggests the name of a new file."""
    dialog = QFileDialog(parent, title)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    if dialog.directory() == QDir.current():  # the first dialog of this process: the working directory is no place for documents
        dialog.setDirectory(_own_files())
    if saves:
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.selectFile(saves)
    dialog.fileSelected.connect(then)
    return dialog


def files_dialog(parent: QWidget, title: str, kinds: str, then: Callable[[list[str]], object]) -> QFileDialog:
    """A dialog for one or more files of these `kinds`, such as "Tables (*.csv)"; `then` gets their paths."""
    dialog = file_dialog(parent, title, lambda _path: None)
    dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
    dialog.setNameFilter(kinds)
    dialog.filesSelected.connect(then)
    return dialog


def _own_files() -> str:
    places = QStandardPaths.StandardLocation
    documents = QStandardPaths.writableLocation(places.DocumentsLocation)
    return documents if Path(documents).is_dir() else QStandardPaths.writableLocation(places.HomeLocation)


def replace_suffix(path: Path, ending: str, known: Collection[str]) -> Path:
    """Replace a known suffix by `ending`; append it otherwise, because "v1.2" or a date has a full stop, too."""
    stem = path.stem if path.suffix.lower() in known else path.name
    return path.with_name(stem + ending)


def add_suffix(path: Path, ending: str, known: Collection[str]) -> Path:
    """Append `ending` to a typed name without a known suffix, choosing a name that is free."""
    return path if path.suffix.lower() in known else unused_path(replace_suffix(path, ending, known))


def unused_path(path: Path) -> Path:
    """The path, or with a number if it exists: the dialog did not ask about overwriting this name."""
    numbered = (path.with_stem(f"{path.stem}-{number}") for number in count(2))
    return next(candidate for candidate in chain((path,), numbered) if not candidate.exists())
