"""Logging in one format: to stderr, and to a rotated file that `waggle log` searches. Secrets are left out.

stdout belongs to events.
"""

import logging
import os
import re
import sys
from collections.abc import Iterator
from logging.handlers import RotatingFileHandler
from pathlib import Path

FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
FILE_BYTES, FILES = 1_000_000, 4  # 4 MB in all
END_BYTES = 16_384  # of the log that a view of its last lines reads
SECRETS = re.compile(r"(\bhf_)\w{8,}|(#key=)[\w-]+|(\b(?:password|passphrase|token)\b['\"]?\s*[=:]\s*)\S+", re.IGNORECASE)
FLOOD_S, FLOOD_LINES = 10.0, 20  # of one DEBUG message, so many lines pass in this time (s)
MAX_MESSAGES = 1000  # that the flood filter remembers; Waggle has fewer


class RedactingFormatter(logging.Formatter):
    """Writes no secret, wherever it comes from, tracebacks included; says how many lines the flood filter dropped."""

    def format(self, record: logging.LogRecord) -> str:
        dropped = getattr(record, "dropped", 0)
        text = without_secrets(super().format(record))
        return f"{text} ({dropped} more lines like this were dropped)" if dropped else text


class FloodFilter(logging.Filter):
    """Drops DEBUG lines that repeat too fast: strangers can cause some of them as often as they like.

    Lines count as repeated if they have the same message before its arguments are filled in. One filter serves all handlers.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lines: dict[tuple[str, str], tuple[float, int]] = {}  # (logger, message) -> (unix s, lines since then)

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno > logging.DEBUG:
            return True
        if not hasattr(record, "passes"):  # else another handler has asked already
            passes, dropped = self._count_line(record)
            record.__dict__.update(passes=passes, dropped=dropped)
        return bool(record.__dict__["passes"])

    def _count_line(self, record: logging.LogRecord) -> tuple[bool, int]:
        """Whether a line passes, and how many lines were dropped in the period before it."""
        key = record.name, str(record.msg)
        began, lines = self._lines.get(key, (record.created, 0))
        dropped = 0
        if not 0 <= record.created - began < FLOOD_S:
            began, lines, dropped = record.created, 0, max(0, lines - FLOOD_LINES)
        if len(self._lines) >= MAX_MESSAGES:
            self._lines.clear()
        self._lines[key] = began, lines + 1
        return lines < FLOOD_LINES, dropped


class RotatedFile(RotatingFileHandler):
    """A log file that goes on growing where it cannot be renamed: on Windows, while another process of Waggle has it open."""

    def doRollover(self) -> None:
        if self.stream is not None:
            self.stream.close()
            self.stream = None  # the next line opens it
        path = Path(self.baseFilename)
        moving = path.with_name(f"{path.name}.moving")
        try:  # before older files are moved, which would end with none left; at once, because a line waits for it
            os.rename(path, moving)
            os.rename(moving, path)
        except OSError:  # the next line tries again
            return
        super().doRollover()


def start(level: str = "WARNING", folder: Path | None = None) -> None:
    """Log to stderr from this level on, and to a file in this folder from INFO on.

    With DEBUG, stderr and the file also get Waggle's own DEBUG lines, but not those of libraries.
    """
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    handlers[0].setLevel(level)
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handlers.append(RotatedFile(folder / "waggle.log", "a", FILE_BYTES, FILES - 1, "utf-8", delay=True))
        except OSError:  # the folder cannot be used: the engine reports that in its own words
            pass
    flood = FloodFilter()
    for handler in handlers:
        handler.setFormatter(RedactingFormatter(FORMAT))
        handler.addFilter(flood)
    logging.basicConfig(level="INFO" if len(handlers) > 1 else level, handlers=handlers, force=True)
    if level == "DEBUG":  # of Waggle only: some libraries log every call at this level
        logging.getLogger().setLevel("INFO")
        logging.getLogger("waggle").setLevel("DEBUG")
    logging.raiseExceptions = False  # with a full disk, a line is lost and the engine continues


def without_secrets(text: str) -> str:
    """The text without tokens, keys of invites and passwords."""
    return SECRETS.sub(lambda match: next(group for group in match.groups() if group) + "...", text)


def lines(folder: Path, *, level: str = "INFO", word: str = "") -> Iterator[str]:
    """The log lines from a level on that contain a word, oldest first. A traceback belongs to the line before it."""
    levels = LEVELS[LEVELS.index(level) :] if level in LEVELS else LEVELS
    keep = False
    files = sorted(folder.glob("waggle.log*"), key=_age, reverse=True) if folder.is_dir() else []
    for path in files:
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            parts = line.split(maxsplit=3)
            if len(parts) > 2 and parts[2] in (*LEVELS, "CRITICAL"):
                keep = (parts[2] in levels or parts[2] == "CRITICAL") and word.lower() in line.lower()
            if keep:
                yield line


def newest_lines(folder: Path, count: int) -> list[str]:
    """The last log lines of the present file, at most `count`, oldest first. However long the log is, its end alone is read."""
    try:
        with (folder / "waggle.log").open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - END_BYTES))
            text = file.read(END_BYTES).decode("utf-8", errors="replace")
    except OSError:  # nothing was logged yet, or the file is being renamed
        return []
    whole = text.splitlines() if end <= END_BYTES else text.splitlines()[1:]
    return whole[-count:]


def _age(path: Path) -> int:
    return int(path.suffix[1:]) if path.suffix[1:].isdigit() else 0
