"""Weights & Biases: an offline folder, which `wandb sync` uploads if its owner wants that. Nothing is sent from here.

Its library is imported by name, as the installed app is packed without it.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

PROJECT = "waggle"


class WandbFolder:
    """Writes offline runs below a folder. Raises ImportError if the library is not installed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._wandb = import_module("wandb")
        self._run: Any = None

    def begin(self, run: str, facts: Mapping[str, str]) -> None:
        """Begin a new offline run of this name."""
        self.close()
        self._folder.mkdir(parents=True, exist_ok=True)
        quiet = self._wandb.Settings(console="off", silent=True, disable_git=True, save_code=False)
        self._run = self._wandb.init(
            project=PROJECT, name=run, group=run, config=dict(facts), dir=str(self._folder), mode="offline", settings=quiet
        )

    def log(self, step: int, at: float, figures: Mapping[str, float]) -> None:
        """The round and its time are figures, too: a step of W&B must not go back, and a round may be played again."""
        self._run.log({**figures, "round": step, "finished": at})

    def close(self) -> None:
        if self._run is not None:
            self._run.finish()
            self._wandb.teardown()  # waits for the process that writes the file; `finish` returns before it has
            self._run = None
