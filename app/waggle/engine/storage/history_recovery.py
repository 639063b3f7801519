"""Opens a history; a damaged one is rebuilt from the record of events, as far as that goes back: history is a fold of it."""

import logging
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from waggle.core.errors import HistoryDamaged, HistoryError
from waggle.core.settings import ModelSettings, Settings
from waggle.engine.runtime.event_publisher import oldest_first
from waggle.engine.storage.history import History
from waggle.protocol import events, json_lines
from waggle.protocol.state import AnyEvent, Snapshot, State

log = logging.getLogger(__name__)

SIDE_FILES = ("-wal", "-shm")  # SQLite's files beside a database; it would apply them to the next database of this name


@dataclass(frozen=True)
class Rebuilt:
    """How many rounds came back, and where the damaged file is."""

    rounds: int
    aside: Path


def open_or_rebuild(path: Path, record: Path, model: ModelSettings) -> tuple[History, Rebuilt | None]:
    """The history of a model. A damaged one is kept aside; what a folder of records knows of the model stands in its place.

    It does so whole or not at all: killed in the middle, the next start finds none, and begins again. Raises HistoryError.
    """
    aside = path.with_suffix(".damaged")
    try:
        if path.exists() or not aside.exists():
            return History(path), None
    except HistoryDamaged:
        pass
    log.info("%s is damaged, rebuilding it from the record of events", path)
    try:
        _set_aside(path, aside)
        rounds = _rebuild(path, record, model)
    except OSError as error:
        raise HistoryError(f"The history cannot be written: {error}.", "Make room on the disk, or mend its rights.") from error
    return History(path), Rebuilt(rounds, aside)


def _set_aside(path: Path, aside: Path) -> None:
    if path.exists():
        _remove(aside)
        path.replace(aside)
    for end in SIDE_FILES:
        if (beside := Path(f"{path}{end}")).exists():
            beside.replace(f"{aside}{end}")


def _remove(path: Path) -> None:
    for end in ("", *SIDE_FILES):
        Path(f"{path}{end}").unlink(missing_ok=True)


def _rebuild(path: Path, record: Path, model: ModelSettings) -> int:
    """Make a history of every event of the record; how many rounds came back."""
    making = path.with_suffix(".rebuilding")
    _remove(making)
    with closing(History(making)) as history:
        folding = _HistoryFold(history, model)
        with history.at_once():
            for file in oldest_first(record, time.time()):  # their names tell of clocks that were ahead
                for event in json_lines.recording(file):
                    folding.take(event)
        history.thin()
        history.settle()
    making.replace(path)
    return len(folding.rounds)


@dataclass
class _HistoryFold:
    """Takes events oldest first, and keeps of them what is of one model."""

    history: History
    model: ModelSettings
    ours: bool = False  # whether what comes is of this model
    datasets: dict[str, str] = field(default_factory=dict)  # what a specialty is called by its title
    rounds: set[int] = field(default_factory=set)

    def take(self, event: AnyEvent | None) -> None:
        match event:
            case events.SettingsChanged():
                self._follow(event.settings, event.after_restart)
            case events.Ready():
                self._name(event.specialties)
                if self.ours:
                    self.history.go_on_from(event.round)
            case Snapshot():  # a file that goes on where another was full
                self._take_state(event.state)
            case _ if not self.ours:
                return
            case events.RoundCompleted():
                self._take_round(event.summary)
            case events.HeldOutMeasured():
                self.history.keep_score(event.score)
            case events.AhaHappened():
                self._take_aha(event.aha)
            case _:
                return

    def _take_state(self, state: State) -> None:
        if state.settings:
            self._follow(state.settings, state.after_restart)
        if state.ready:
            self._name(state.ready.specialties)
        if not self.ours or state.preparing:  # before another model is ready, all there is belongs to the one before
            return
        for summary in state.rounds:
            self._take_round(summary)
        for score in state.held_out:
            self.history.keep_score(score)
        for aha in state.ahas:
            self._take_aha(aha)

    def _follow(self, settings: Settings, later: Sequence[str]) -> None:
        """The engine tells its settings when it begins; a model that is chosen meanwhile waits until it begins again."""
        if not any(key.startswith("model.") for key in later):
            self.ours = (settings.model.name, settings.model.folder) == (self.model.name, self.model.folder)

    def _name(self, specialties: Sequence[events.SpecialtyInfo]) -> None:
        self.datasets |= {specialty.title: specialty.dataset for specialty in specialties}

    def _take_round(self, summary: events.RoundSummary) -> None:
        self.history.keep_round(summary)
        self.rounds.add(summary.round)

    def _take_aha(self, aha: events.Aha) -> None:
        if aha.specialty in self.datasets:
            self.history.keep_aha(self.datasets[aha.specialty], aha)
