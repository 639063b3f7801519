"""Screenshots of pages x themes x scales x states x languages, and one sheet for each page.

    PYTHONPATH=app:tests python -m pictures.matrix FOLDER

Also makes the screenshot of the README: FOLDER/readme.png, stored as docs/screenshot.png.

What to look for: clipped words, parts that are not mirrored, colours that cannot be read, a state that says nothing.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import shiboken6
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QImage, QPainter

from pictures.event_loop import application_with_coroutines
from pictures.screenshots import Story, failed, starting, window_of
from waggle.core import paths
from waggle.core.settings import Settings
from waggle.gui.application.main_window import MainWindow
from waggle.gui.application.screenshot import screenshot_when_still
from waggle.gui.i18n import translator
from waggle.gui.i18n.translator import Language
from waggle.gui.pages import PAGES
from waggle.gui.pages.live.page import ALL_ANSWERS, STAGE, LivePage
from waggle.gui.pages.progress.page import ProgressPage
from waggle.gui.theme.theme import Theme, ThemeName
from waggle.protocol import events, json_lines
from waggle.protocol.state import Snapshot

THEMES: tuple[ThemeName, ...] = ("light", "dark")
LANGUAGES: tuple[Language, ...] = ("en", "pseudo", "mirrored")
STATES: dict[str, Callable[[Story], Story]] = {
    "empty": lambda story: [], "loading": starting, "normal": lambda story: story, "error": failed,
}  # fmt: skip
TABLE, ANSWERS = "table", "answers"  # of Progress and of Live
VIEWS = (*PAGES, TABLE, ANSWERS)
SCALES = ("1", "2")
SIZE = (1024, 640)  # the smallest size in which everything must fit
README = (1280, 800)
THUMB = 512


class Shot(NamedTuple):
    """One screenshot of the matrix."""

    page: str
    theme_name: str
    language: str
    state: str

    def name(self, scale: str) -> str:
        return f"{self.page}-{self.theme_name}-{self.language}-{self.state}@{scale}x.png"


def shots(folder: Path, scale: str) -> Iterator[Path]:
    """Take a quarter of all screenshots for each language and state; yields each file when it is written."""
    story, theme = example(), Theme("light")
    for spoken in LANGUAGES:
        translator.use(spoken)
        for state, edit in STATES.items():
            theme.use("light")
            window = window_of(theme, edit(story), replay=False)
            window.resize(*SIZE)
            for theme_name in THEMES:
                theme.use(theme_name)
                for page in VIEWS:
                    show(window, page)
                    path = folder / Shot(page, theme_name, spoken, state).name(scale)
                    screenshot_when_still(window).save(str(path))
                    yield path
            shiboken6.delete(window)  # at once: a window that waits for its deletion gets each new theme, too


def example() -> Story:
    """The run that ships with Waggle, not yet stopped."""
    played = [event for event in json_lines.recording(paths.example()) if event and not isinstance(event, events.EngineStopped)]
    chosen = Settings()  # not in the recording
    with_settings = [
        replace(event, state=replace(event.state, settings=chosen)) if isinstance(event, Snapshot) else event for event in played
    ]
    return [events.SettingsChanged(settings=chosen, at=played[0].at), *with_settings]


def readme(folder: Path) -> Path:
    """The screenshot of the README: Home, as most users see it."""
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
    """Show a page, or a page in one of its views."""
    window.show_page({TABLE: "progress", ANSWERS: "live"}.get(view, view))
    progress = window.pages.built.get("progress")
    if isinstance(progress, ProgressPage):
        progress.show_table(view == TABLE)
    live = window.pages.built.get("live")
    if isinstance(live, LivePage):
        live.show_view(ALL_ANSWERS if view == ANSWERS else STAGE)


def sheet(page: str, folder: Path) -> Path:
    """All screenshots of a page on one sheet: a row for each state and theme, a column for each language and scale."""
    height = THUMB * SIZE[1] // SIZE[0]
    columns = [(spoken, scale) for scale in SCALES for spoken in LANGUAGES]
    rows = [(state, theme_name) for state in STATES for theme_name in THEMES]
    image = QImage(len(columns) * THUMB, len(rows) * height, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.white)
    painter = QPainter(image)
    for down, (state, theme_name) in enumerate(rows):
        for across, (spoken, scale) in enumerate(columns):
            picture = QImage(str(folder / Shot(page, theme_name, spoken, state).name(scale)))
            picture.setDevicePixelRatio(1)  # Qt takes it from the file name
            small = picture.scaledToWidth(THUMB, Qt.TransformationMode.SmoothTransformation)
            painter.drawImage(QPoint(across * THUMB, down * height), small)
    painter.end()
    path = folder / f"sheet-{page}.png"
    image.save(str(path))
    return path


def main(arguments: Sequence[str]) -> int:
    """Take both scales, each in its own process, because Qt reads the scale when it starts."""
    folder, scale = Path(arguments[0]), arguments[1] if len(arguments) > 1 else ""
    folder.mkdir(parents=True, exist_ok=True)
    if scale:
        application_with_coroutines()
        for path in shots(folder, scale):
            sys.stdout.write(f"{path}\n")
        return 0
    for each in SCALES:
        command = [sys.executable, "-m", "pictures.matrix", str(folder), each]
        subprocess.run(command, env={**os.environ, "QT_SCALE_FACTOR": each}, check=True)
    application_with_coroutines()
    for path in (*(sheet(page, folder) for page in VIEWS), readme(folder)):
        sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
