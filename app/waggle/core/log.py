"""Logging in one format: to stderr, and to a file that is rotated and that `waggle log` searches. Secrets are left out.

stdout belongs to events.
"""

import logging
import re
import sys
from collections.abc import Iterator
from logging.handlers import RotatingFileHandler
from pathlib import Path

FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
FILE_BYTES, FILES = 1_000_000, 4  # 4 MB in all
SECRETS = re.compile(r"(\bhf_)\w{8,}|(#key=)[\w-]+|(\b(?:password|passphrase|token)\b['\"]?\s*[=:]\s*)\S+", re.IGNORECASE)


class Discreet(logging.Formatter):
    """Writes no secret, wherever it came from: also in what a traceback quotes."""

    def format(self, record: logging.LogRecord) -> str:
        return without_secrets(super().format(record))


def start(level: str = "WARNING", folder: Path | None = None) -> None:
    """Send every log line of this process to stderr and, with INFO and above, to a file in this folder; with DEBUG, both get
    that level of Waggle's own modules."""
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    handlers[0].setLevel(level)
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handlers.append(RotatingFileHandler(folder / "waggle.log", "a", FILE_BYTES, FILES - 1, "utf-8", delay=True))
        except OSError:  # the folder cannot be used: the engine says so in its own words
            pass
    for handler in handlers:
        handler.setFormatter(Discreet(FORMAT))
    logging.basicConfig(level="INFO" if len(handlers) > 1 else level, handlers=handlers, force=True)
    if level == "DEBUG":  # of Waggle alone: libraries log each call at this level
        logging.getLogger().setLevel("INFO")
        logging.getLogger("waggle").setLevel("DEBUG")
    logging.raiseExceptions = False  # a full disk: a log line is lost, not the engine


def without_secrets(text: str) -> str:
    """The text with tokens, keys of invites and passwords taken out."""
    return SECRETS.sub(lambda match: next(group for group in match.groups() if group) + "...", text)


def lines(folder: Path, *, level: str = "INFO", word: str = "") -> Iterator[str]:
    """What was logged from a level on, oldest first, with a word in it; a traceback belongs to the line before it."""
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


def _age(path: Path) -> int:
    return int(path.suffix[1:]) if path.suffix[1:].isdigit() else 0
