"""Hands the figures of rounds to tools of research, in a thread of its own: a slow disk or library must not hold the engine."""

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from waggle.core import research_library
from waggle.core.message import Message, in_turn
from waggle.core.paths import expand_user
from waggle.core.settings import TrackingSettings
from waggle.core.system.os_faults import fault_of
from waggle.engine.storage.tracking.figures import round_figures, score_figures
from waggle.engine.storage.tracking.interface import TrackingTool
from waggle.engine.storage.tracking.tensorboard_files import TensorboardFiles
from waggle.engine.storage.tracking.trackio_folder import TrackioFolder
from waggle.engine.storage.tracking.wandb_folder import WandbFolder
from waggle.protocol import events, json_lines

KINDS = (b'{"type":"Ready"', b'{"type":"RoundCompleted"', b'{"type":"HeldOutMeasured"')  # beginnings of lines
CLOSE_SECONDS = 10.0
Warn = Callable[[events.Warned], object]
log = logging.getLogger(__name__)


def tools_of(chosen: TrackingSettings, warn: Warn) -> list[TrackingTool]:
    """The tools that the settings name. `warn` takes a warning about each that is not installed."""
    tools: list[TrackingTool] = []
    named: list[tuple[str, str, Callable[[Path], TrackingTool], str]] = [
        ("TensorBoard", "tensorboard", TensorboardFiles, chosen.tensorboard), ("W&B", "wandb", WandbFolder, chosen.wandb),
        ("Trackio", "trackio", TrackioFolder, chosen.trackio),
    ]  # fmt: skip
    for name, library, make, folder in named:
        if not folder:
            continue
        try:
            tools.append(make(expand_user(folder).absolute()))
        except ImportError as error:
            log.info("%s is not installed: %s", name, error)
            title = Message("%1 is not installed, so it gets no figures.", name)
            warn(events.Warned(title=title, advice=in_turn(Message("Training continues."), research_library.advice(library))))
    return tools


class RoundTracker:
    """Takes the engine's event lines, on its loop. A tool that fails gets no more figures, and `warn` takes the reason."""

    def __init__(self, tools: Sequence[TrackingTool], warn: Warn) -> None:
        self._tools, self._warn = list(tools), warn
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._has_begun = False
        self._thread = threading.Thread(target=self._run, name="tracking", daemon=True)
        self._thread.start()

    def __call__(self, line: bytes) -> None:
        if line.startswith(KINDS):
            self._lines.put(line)

    def close(self) -> None:
        """Hand on what has come, and close the tools."""
        self._lines.put(None)
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        while (line := self._lines.get()) is not None:
            event = json_lines.event(line)
            if isinstance(event, events.Ready):
                self._begin(event)
            elif isinstance(event, events.RoundCompleted) and self._has_begun:
                summary = event.summary
                self._log(summary.round, summary.at, round_figures(summary))
            elif isinstance(event, events.HeldOutMeasured) and self._has_begun:
                self._log(event.score.round, event.score.at, score_figures(event.score))
        self._each(lambda tool: tool.close())

    def _begin(self, ready: events.Ready) -> None:
        facts = {"model": ready.model, "swarm": ready.swarm, "device": ready.device, "version": ready.version}
        self._each(lambda tool: tool.begin(ready.run, facts))
        self._has_begun = True

    def _log(self, step: int, at: float, figures: dict[str, float]) -> None:
        self._each(lambda tool: tool.log(step, at, figures))

    def _each(self, work: Callable[[TrackingTool], None]) -> None:
        for tool in tuple(self._tools):
            try:
                work(tool)
            except Exception as error:
                log.info("a tool of research failed", exc_info=True)
                self._tools.remove(tool)
                reason = fault_of(error).reason if isinstance(error, OSError) else type(error).__name__
                title = Message("The figures of rounds cannot be written any more: %1.", reason)
                self._warn(
                    events.Warned(
                        title=title, advice=Message("Training continues. They are tried again at the engine's next start.")
                    )
                )
