"""Pictures of pages x themes x scales x states x languages, and one sheet a page.

    PYTHONPATH=app:tests python -m pictures.matrix FOLDER

The README's picture comes from here too: FOLDER/readme.png, stored as docs/screenshot.png.

What to look for: words that are cut, sides that were not swapped, ink that cannot be read, a state that says nothing.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import shiboken6
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QImage, QPainter

from pictures.screenshots import Story, failed, starting, window_of
from waggle.core import paths
from waggle.core.settings import Settings
from waggle.gui.application.main import application
from waggle.gui.application.main_window import MainWindow
from waggle.gui.application.screenshot import screenshot_when_still
from waggle.gui.i18n import translator
from waggle.gui.i18n.translator import Language
from waggle.gui.pages import PAGES
from waggle.gui.pages.progress.page import ProgressPage
from waggle.gui.theme.theme import Theme, ThemeName
from waggle.protocol import events, json_lines

THEMES: tuple[ThemeName, ...] = ("light", "dark")
LANGUAGES: tuple[Language, ...] = ("en", "pseudo", "mirrored")
STATES: dict[str, Callable[[Story], Story]] = {
    "empty": lambda told: [], "loading": starting, "normal": lambda told: told, "error": failed,
}  # fmt: skip
TABLE = "table"  # of Progress
VIEWS = (*PAGES, TABLE)
SCALES = ("1", "2")
SIZE = (1024, 640)  # the smallest that everything must fit into
README = (1280, 800)
THUMB = 512


class Shot(NamedTuple):
    """One picture of the matrix."""

    page: str
    theme_name: str
    language: str
    state: str

    def name(self, scale: str) -> str:
        return f"{self.page}-{self.theme_name}-{self.language}-{self.state}@{scale}x.png"


def shots(folder: Path, scale: str) -> Iterator[Path]:
    """Take a quarter of them all for each language and state; yields each file as it is written."""
    told, theme = example(), Theme("light")
    for spoken in LANGUAGES:
        translator.use(spoken)
        for state, story in STATES.items():
            theme.use("light")
            window = window_of(theme, story(told), replay=False)
            window.resize(*SIZE)
            for theme_name in THEMES:
                theme.use(theme_name)
                for page in VIEWS:
                    show(window, page)
                    path = folder / Shot(page, theme_name, spoken, state).name(scale)
                    screenshot_when_still(window).save(str(path))
                    yield path
            shiboken6.delete(window)  # at once: a window that waits for its end is dressed again with each theme


def example() -> Story:
    """The run that ships with Waggle, still going on."""
    played = [event for event in json_lines.recording(paths.example()) if event and not isinstance(event, events.EngineStopped)]
    first, last = (events.SettingsChanged(settings=Settings(), at=played[place].at) for place in (0, -1))  # not in the recording
    return [first, *played, last]


def readme(folder: Path) -> Path:
    """The picture of the README: Home, as most people see it."""
    translator.use("en")
    theme = Theme("light")
    theme.use("light")
    window = window_of(theme, example(), replay=False)
    window.resize(*README)
    show(window, "home")
    path = folder / "readme.png"
    screenshot_when_still(window).save(str(path))
    window.hide()
    return path


def show(window: MainWindow, view: str) -> None:
    """A page, or one seen in another way."""
    window.show_page("progress" if view == TABLE else view)
    progress = window.pages.built.get("progress")
    if isinstance(progress, ProgressPage):
        progress.show_table(view == TABLE)


def sheet(page: str, folder: Path) -> Path:
    """All pictures of a page on one: a row for each state and theme, a column for each language and scale."""
    height = THUMB * SIZE[1] // SIZE[0]
    columns = [(spoken, scale) for scale in SCALES for spoken in LANGUAGES]
    rows = [(state, theme_name) for state in STATES for theme_name in THEMES]
    made = QImage(len(columns) * THUMB, len(rows) * height, QImage.Format.Format_RGB32)
    made.fill(Qt.GlobalColor.white)
    painter = QPainter(made)
    for down, (state, theme_name) in enumerate(rows):
        for across, (spoken, scale) in enumerate(columns):
            picture = QImage(str(folder / Shot(page, theme_name, spoken, state).name(scale)))
            picture.setDevicePixelRatio(1)  # which Qt reads from the name
            small = picture.scaledToWidth(THUMB, Qt.TransformationMode.SmoothTransformation)
            painter.drawImage(QPoint(across * THUMB, down * height), small)
    painter.end()
    path = folder / f"sheet-{page}.png"
    made.save(str(path))
    return path


def main(arguments: Sequence[str]) -> int:
    """Both scales, each in a process of its own: Qt is told of the scale when it starts."""
    folder, scale = Path(arguments[0]), arguments[1] if len(arguments) > 1 else ""
    folder.mkdir(parents=True, exist_ok=True)
    if scale:
        application()
        for path in shots(folder, scale):
            sys.stdout.write(f"{path}\n")
        return 0
    for each in SCALES:
        command = [sys.executable, "-m", "pictures.matrix", str(folder), each]
        subprocess.run(command, env={**os.environ, "QT_SCALE_FACTOR": each}, check=True)
    application()
    for path in (*(sheet(page, folder) for page in VIEWS), readme(folder)):
        sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
