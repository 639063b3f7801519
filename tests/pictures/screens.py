"""Pictures of every page on screens of many sizes, from a small laptop to a large monitor.

    PYTHONPATH=app:tests python -m pictures.screens FOLDER [SCREEN...]

Each screen is a process of its own with the scale factor of that screen; the window fills what panel and title bar leave free.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pictures.event_loop import application_with_coroutines
from pictures.matrix import THEMES, VIEWS, example, show
from pictures.screenshots import window_of, with_peers
from waggle.gui.application.screenshot import screenshot_when_still
from waggle.gui.theme.theme import Theme


class Screen(NamedTuple):
    """A screen in device pixels, its scale factor, and the height that a panel takes, in device pixels."""

    width: int
    height: int
    scale: float = 1.0
    panel: int = 40

    @property
    def name(self) -> str:
        return f"{self.width}x{self.height}" + (f"@{self.scale * 100:.0f}" if self.scale != 1 else "")

    @property
    def room(self) -> tuple[int, int]:
        """Width and height that a maximised window has for itself, in logical pixels."""
        return int(self.width / self.scale), int((self.height - self.panel) / self.scale) - TITLE_BAR


TITLE_BAR = 24  # logical pixels
SCREENS = (
    Screen(1024, 600, panel=28),
    Screen(1366, 768, 1.25),
    Screen(1366, 768, 1.5),
    Screen(1440, 900),
    Screen(1920, 1080),
    Screen(2560, 1440),
)


def shots(folder: Path, screen: Screen) -> Iterator[Path]:
    """Pictures of all pages on one screen in every theme; yields each file when it is written."""
    theme = Theme("light")
    theme.use("light")
    window = window_of(theme, with_peers(example()), replay=False)
    window.resize(*screen.room)
    for theme_name in THEMES:
        theme.use(theme_name)
        for view in VIEWS:
            show(window, view)
            path = folder / f"{view}-{screen.name}-{theme_name}.png"
            screenshot_when_still(window).save(str(path))
            yield path
    window.hide()


def main(arguments: Sequence[str]) -> int:
    folder, *names = arguments
    Path(folder).mkdir(parents=True, exist_ok=True)
    chosen = [screen for screen in SCREENS if not names or screen.name in names]
    if os.environ.get("QT_SCALE_FACTOR") and len(chosen) == 1:
        application_with_coroutines()
        for path in shots(Path(folder), chosen[0]):
            sys.stdout.write(f"{path}\n")
        return 0
    for screen in chosen:
        command = [sys.executable, "-m", "pictures.screens", folder, screen.name]
        subprocess.run(command, env={**os.environ, "QT_SCALE_FACTOR": f"{screen.scale:g}"}, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
