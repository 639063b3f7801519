"""TensorBoard: event files that `tensorboard --logdir FOLDER` shows, a folder for each run.

Its library is imported by name, as the installed app is packed without it.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

FLUSH_SECONDS = 10


class TensorboardFiles:
    """Writes scalars below a folder. Raises ImportError if the library is not installed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writers = import_module("tensorboard.summary.writer.event_file_writer")
        self._events = import_module("tensorboard.compat.proto.event_pb2")
        self._summaries = import_module("tensorboard.compat.proto.summary_pb2")
        self._writer: Any = None

    def begin(self, run: str, facts: Mapping[str, str]) -> None:
        """Begin a new file in the run's folder. TensorBoard shows no facts."""
        self.close()
        self._writer = self._writers.EventFileWriter(str(self._folder / run), flush_secs=FLUSH_SECONDS)

    def log(self, step: int, at: float, figures: Mapping[str, float]) -> None:
        values = [self._summaries.Summary.Value(tag=name, simple_value=figure) for name, figure in figures.items()]
        self._writer.add_event(self._events.Event(wall_time=at, step=step, summary=self._summaries.Summary(value=values)))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
