"""Trackio: a folder with a database for each project, which `trackio show` draws. Nothing is sent from here.

Figures go to the library's storage directly, because its `init` would follow variables that name a server or a Space of others.
Its library is imported by name, as the installed app is packed without it.
"""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

PROJECT = "waggle"


class TrackioFolder:
    """Writes runs below a folder. Raises ImportError if the library is not installed."""

    def __init__(self, folder: Path) -> None:
        os.environ["TRACKIO_DIR"] = str(folder)  # the library reads it once, when it is imported
        self._storage: Any = import_module("trackio.sqlite_storage").SQLiteStorage
        self._folder = folder
        self._run, self._facts = "", dict[str, str]()

    def begin(self, run: str, facts: Mapping[str, str]) -> None:
        """Begin a run, or continue that of this name."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._run, self._facts = run, dict(facts)

    def log(self, step: int, at: float, figures: Mapping[str, float]) -> None:
        moment = datetime.fromtimestamp(at, UTC).isoformat()
        self._storage.bulk_log(PROJECT, self._run, [dict(figures)], steps=[step], timestamps=[moment], config=self._facts)

    def close(self) -> None:
        """Do nothing: every round was stored at once."""
