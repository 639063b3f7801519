"""The last lines of the engine's log, as they come."""

from pathlib import Path

from rich.text import Text
from textual.widgets import RichLog

from waggle.core import log
from waggle.core.message import plain

REFRESH_SECONDS = 1.0
LINES = 100
STYLES = {"WARNING": "bold", "ERROR": "bold red", "CRITICAL": "bold red"}


class LogLines(RichLog):
    """Shows a log of which new lines are written below, until a person scrolls up."""

    DEFAULT_CSS = (
        "LogLines, LogLines:focus { height: 1fr; background: $background; background-tint: $background 0%; scrollbar-size: 0 1; }"
    )

    def __init__(self, folder: Path) -> None:
        super().__init__(max_lines=LINES, min_width=0, wrap=True, markup=False, highlight=False)
        self._folder = folder
        self._newest = ""

    def on_mount(self) -> None:
        self.set_interval(REFRESH_SECONDS, self._read)
        self._read()

    def _read(self) -> None:
        lines = log.newest_lines(self._folder, LINES)
        known = max((place for place, line in enumerate(lines) if line == self._newest), default=-1)
        for line in lines[known + 1 :]:
            self.write(_without_origin(line), scroll_end=self.is_vertical_scroll_end)
        self._newest = lines[-1] if lines else self._newest


def _without_origin(line: str) -> Text:
    """A line without its date and the name of its logger. A line of a traceback has neither."""
    parts = line.split(maxsplit=4)
    if len(parts) == 5 and parts[2] in (*log.LEVELS, "CRITICAL"):
        _, at, level, _, words = parts
        return Text(plain(f"{at.partition(',')[0]} {words}"), style=STYLES.get(level, ""))
    return Text(plain(line), style="dim")
