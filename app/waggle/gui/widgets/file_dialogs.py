"""File dialogs, and file names that overwrite nothing without a question."""

import asyncio
from collections.abc import Collection
from itertools import chain, count
from pathlib import Path

from PySide6.QtCore import QDir, QStandardPaths, Qt
from PySide6.QtWidgets import QFileDialog, QWidget


def file_dialog(parent: QWidget, title: str, *, saves: str = "") -> QFileDialog:
    """A dialog for a file, to be opened by `chosen_path`. `saves` suggests the name of a new file."""
    dialog = QFileDialog(parent, title)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    if dialog.directory() == QDir.current():  # the first dialog of this process: the working directory is no place for documents
        dialog.setDirectory(_own_files())
    if saves:
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.selectFile(saves)
    return dialog


async def chosen_paths(dialog: QFileDialog) -> list[str]:
    """Open a dialog, without a nested event loop, and wait for a choice; nothing if the person chose nothing."""
    choice: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()

    def choose(paths: list[str]) -> None:
        if not choice.done():
            choice.set_result([QDir.toNativeSeparators(path) for path in paths])

    dialog.filesSelected.connect(choose)
    dialog.rejected.connect(lambda: choose([]))
    dialog.open()
    return await choice


async def chosen_path(dialog: QFileDialog) -> Path | None:
    """The same for one file."""
    paths = await chosen_paths(dialog)
    return Path(paths[0]) if paths else None


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
