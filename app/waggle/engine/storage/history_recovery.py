"""Opens a history, and rebuilds a damaged one from the record of events, as far as that goes back."""

import logging
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from waggle.core import damaged_file
from waggle.core.errors import HistoryDamaged, HistoryError
from waggle.core.message import Message
from waggle.core.settings import ModelSettings, Settings
from waggle.core.system import file_moves
from waggle.engine.runtime.event_publisher import oldest_first
from waggle.engine.storage.history import DAMAGED, History, latest_rounds, merge_side_files, read_all
from waggle.protocol import events, json_lines
from waggle.protocol.state import AnyEvent, Snapshot, State

log = logging.getLogger(__name__)

# SQLite's files beside a database. They must move with it: SQLite would apply them to the next database of that name.
SIDE_FILES = ("-wal", "-shm")


@dataclass(frozen=True)
class Rebuilt:
    """The number of rounds that were rebuilt, and the path of the damaged file."""

    rounds: int
    aside: Path


def open_or_rebuild(path: Path, record: Path, model: ModelSettings) -> tuple[History, Rebuilt | None]:
    """Open the history of a model. If it is damaged, set it aside and rebuild it from the events in the folder `record`.

    After a kill in the middle there is a damaged file aside and no history, so the next start rebuilds it. Raises HistoryError.
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
        raise HistoryError(
            Message("The history cannot be written: %1.", error), "Make room on the disk, or mend its rights."
        ) from error
    return History(path), Rebuilt(rounds, aside)


def fill_in(history: History, path: Path, record: Path, model: ModelSettings, number: int) -> int:
    """Add the rounds before `number`, with which the model continues, that an older history lacks; return how many.

    A history that a person put back, or whose last rows a power cut took, is such a one. `path` is the file of `history`.
    Raises HistoryError.
    """
    newest = next(iter(latest_rounds(history, 1)), None)
    first = 0 if newest is None else newest.round + 1
    if first >= number:
        return 0
    try:
        rebuilding, _ = _rebuild_beside(path, record, model)
        recorded_rounds, recorded_scores = read_all(rebuilding)
        rounds = [summary for summary in recorded_rounds if first <= summary.round < number]
        with history.transaction():
            for summary in rounds:
                history.save_round(summary)
            for score in recorded_scores:
                if first <= score.round <= number:
                    history.save_score(score)
        _remove(rebuilding)
    except (OSError, *DAMAGED) as error:
        raise HistoryError(
            Message("The history cannot be written: %1.", error), "Make room on the disk, or mend its rights."
        ) from error
    return len(rounds)


def _set_aside(path: Path, aside: Path) -> None:
    if path.exists():
        if aside.exists():  # of an earlier time, with a name of its own from now on
            earlier = damaged_file.set_aside(aside)
            for end in SIDE_FILES:
                if (beside := Path(f"{aside}{end}")).exists():
                    file_moves.replace(beside, Path(f"{earlier}{end}"))
        file_moves.replace(path, aside)
    for end in SIDE_FILES:
        if (beside := Path(f"{path}{end}")).exists():
            file_moves.replace(beside, Path(f"{aside}{end}"))


def _remove(path: Path) -> None:
    for end in ("", *SIDE_FILES):
        file_moves.unlink(Path(f"{path}{end}"), missing_ok=True)


def _rebuild(path: Path, record: Path, model: ModelSettings) -> int:
    """Rebuild the history under another name, then move it into place; return the number of rounds."""
    rebuilding, rounds = _rebuild_beside(path, record, model)
    file_moves.replace(rebuilding, path)
    return rounds


def _rebuild_beside(path: Path, record: Path, model: ModelSettings) -> tuple[Path, int]:
    """Rebuild the history beside its file; return where, and the number of rounds."""
    rebuilding = path.with_suffix(".rebuilding")
    _remove(rebuilding)
    with closing(History(rebuilding)) as history:
        fold = _HistoryFold(history, model)
        with history.transaction():
            for file in oldest_first(record, time.time()):  # not by name: a clock that was ahead wrote some names
                for event in json_lines.recording(file):
                    fold.apply(event)
        history.thin_out()
    merge_side_files(rebuilding)
    return rebuilding, len(fold.rounds)


@dataclass
class _HistoryFold:
    """Applies events, oldest first, to a history, and skips those of other models."""

    history: History
    model: ModelSettings
    is_our_model: bool = False  # of the events that come now
    datasets: dict[str, str] = field(default_factory=dict)  # by title
    rounds: set[int] = field(default_factory=set)

    def apply(self, event: AnyEvent | None) -> None:
        match event:
            case events.SettingsChanged():
                self._note_model(event.settings, event.after_restart)
            case events.Ready():
                self._note_titles(event.specialties)
                if self.is_our_model:
                    self.history.rewind_to(event.round)
            case Snapshot():  # the first line of a file that continues a full one
                self._apply_state(event.state)
            case _ if not self.is_our_model:
                return
            case events.RoundCompleted():
                self._add_round(event.summary)
            case events.HeldOutMeasured():
                self.history.save_score(event.score)
            case events.AhaHappened():
                self._add_aha(event.aha)
            case _:
                return

    def _apply_state(self, state: State) -> None:
        if state.settings:
            self._note_model(state.settings, state.after_restart)
        if state.ready:
            self._note_titles(state.ready.specialties)
        if not self.is_our_model or state.preparing:  # until the next model is ready, the State is of the model before
            return
        for summary in state.rounds:
            self._add_round(summary)
        for score in state.held_out:
            self.history.save_score(score)
        for aha in state.ahas:
            self._add_aha(aha)

    def _note_model(self, settings: Settings, later: Sequence[str]) -> None:
        """Note which model the events are of. A model that is chosen while the engine runs waits for its restart."""
        if not any(key.startswith("model.") for key in later):
            self.is_our_model = (settings.model.name, settings.model.folder) == (self.model.name, self.model.folder)

    def _note_titles(self, specialties: Sequence[events.SpecialtyInfo]) -> None:
        self.datasets |= {specialty.title: specialty.dataset for specialty in specialties}

    def _add_round(self, summary: events.RoundSummary) -> None:
        self.history.save_round(summary)
        self.rounds.add(summary.round)

    def _add_aha(self, aha: events.Aha) -> None:
        if aha.specialty in self.datasets:
            self.history.successes.save(self.datasets[aha.specialty], aha)
