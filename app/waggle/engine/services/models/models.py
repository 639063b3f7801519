"""Models on this computer: lists, chooses, removes and exports them. Each keeps what it has learned.

The training of a home's first model is stored in the home itself, that of other models in folders of their own below it.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import assert_never

import msgspec
from msgspec import structs

from waggle.core import paths
from waggle.core.errors import EngineError, ExportError, ModelError, VerifierError
from waggle.core.message import Message, in_turn
from waggle.core.settings import ModelSettings, Settings, Value
from waggle.core.system.os_faults import fault_of
from waggle.engine.runtime import model_check, model_offers, model_source
from waggle.engine.runtime.undo_log import NOT_CAUSED_BY_EITHER, NOT_CAUSED_BY_MODEL, UndoStep
from waggle.engine.services.models import export as exporting
from waggle.engine.services.models import training_choice
from waggle.engine.services.models.choice_download import ChoiceDownload
from waggle.engine.services.models.current_weights import CurrentWeights
from waggle.engine.services.models.model_list import list_models
from waggle.engine.system.opening_note import OpeningNote
from waggle.models.inspection import inspector
from waggle.models.memory_fit import DeviceCapacity
from waggle.models.storage import checkpoint, export, hub_cache, hub_download, hub_search
from waggle.protocol import commands, events_models

Restart = Callable[[str, Callable[[], object]], None]  # takes the reason, and how to undo the choice if it fails
NOT_CAUSED_BY_CHOICE = (*NOT_CAUSED_BY_MODEL, *NOT_CAUSED_BY_EITHER, VerifierError)  # of a choice before this start
WHERE_TO_CHOOSE = Message("Choose another on the page Models.")
PROGRESS_STAYS = Message("What this model has learned is kept.")
Change = Callable[[Mapping[str, Value]], Callable[[], object]]  # changes settings; returns how to undo that


@dataclass(frozen=True)
class Measured:
    """What this computer can do. `known` returns None until it has been measured; `wait` measures it, in another thread."""

    known: Callable[[], DeviceCapacity | None] = lambda: None
    wait: Callable[[], DeviceCapacity] | None = None


NOT_MEASURED = Measured()


def undo_steps(home: paths.Home, chosen: ModelSettings, change: Change) -> list[UndoStep]:
    """At the start: how to go back to the model that played a round last.

    If opening the chosen one ended the last engine and none played before, to the starter. A chosen model that is not there is no
    reason to go back: the engine asks (see model_question.py).
    """
    known, now = model_source.read_record(home), _without_training_mode(chosen)
    has_failed = OpeningNote(home).has_failed(now)
    if not has_failed and (known is None or known.before is None):
        return []
    if known is not None and known.before not in (None, now):
        return [
            UndoStep(
                partial(change, _as_settings(known.before)),
                NOT_CAUSED_BY_CHOICE,
                _undo_message(known.before),
                replaces_advice=True,
            )
        ]
    if has_failed:
        says = in_turn(_undo_message(ModelSettings()), PROGRESS_STAYS)
        return [UndoStep(partial(change, _as_settings(ModelSettings())), NOT_CAUSED_BY_CHOICE, says, replaces_advice=True)]
    return []


def _undo_message(other: ModelSettings) -> Message:
    """The message after an undo. It replaces the advice to change settings, which name the other model by then."""
    name = Message("The starter") if other == ModelSettings() else _display_name(other)
    return in_turn(Message("%1 is trained instead.", name), WHERE_TO_CHOOSE)


def _without_training_mode(chosen: ModelSettings) -> ModelSettings:
    """The model's name and folder only, to compare models whatever their training mode."""
    return ModelSettings(name=chosen.name, folder=chosen.folder)


def _as_settings(model: ModelSettings) -> dict[str, Value]:
    return {"model.name": model.name or None, "model.folder": model.folder or None}


def remove_model(name: str) -> None:
    """Remove a model of the hub from this computer, complete or not, but not its training. Raises ModelError if it is in use."""
    known = hub_download.model_of(name, paths.models())
    try:
        if known.unfinished.is_dir() and not hub_cache.drop(known.unfinished):
            raise ModelError(
                Message("%1 is being downloaded by another program.", name), "Wait until that is done, then try again."
            )
        if known.folder.is_dir() and not hub_cache.remove(known.folder):
            raise ModelError(Message("%1 is in use by another engine.", name), "Choose another model there first.")
    except OSError as error:
        raise ModelError(Message("%1 cannot be removed: %2.", name, fault_of(error).reason), fault_of(error).advice) from error


class ModelService:
    """Obeys the commands about models."""

    def __init__(
        self, home: paths.Home, chosen: Settings, change: Change, restart: Restart, download: ChoiceDownload,
        measured: Measured = NOT_MEASURED, current: Callable[[], CurrentWeights | None] = lambda: None,
    ) -> None:  # fmt: skip
        """`current` returns None until a model is open."""
        self._home, self._change, self._restart, self._current = home, change, restart, current
        self._settings, self._measured, self._download = chosen, measured, download
        self._chosen = self._next = _without_training_mode(chosen.model)  # the latter is for the next start
        self._checking: ModelSettings | None = None  # the newest choice that is being checked

    async def obey(self, command: commands.ModelCommand) -> tuple[events_models.ModelEvent, ...]:
        """Obey, and return the events for the sender. Raises WaggleError for what cannot be done; then nothing has changed."""
        match command:
            case commands.ListModels():
                return (await asyncio.to_thread(self._list),)
            case commands.SearchModels():
                return (await asyncio.to_thread(self._search, command.words),)
            case commands.ChooseModel():
                await self._choose(ModelSettings(name=command.name, folder=command.folder))
                return ()
            case commands.CancelChoice():
                self._download.cancel()
                return ()
            case commands.DecideTraining():
                await self._decide(command.choice)
                return ()
            case commands.RemoveModel():
                await asyncio.to_thread(self._remove, command.name)
                return (await asyncio.to_thread(self._list),)
            case commands.ExportModel():
                return (await asyncio.to_thread(self._export, paths.expand_user(command.path), command.gguf),)
            case _:
                assert_never(command)

    def mark_played(self) -> None:
        """Note that a round was played: a later choice that fails is undone to this model."""
        with suppress(ModelError):  # a full disk: a failed choice is undone to the model before
            self._write_record(self._chosen)

    def _list(self) -> events_models.ModelList:
        return list_models(self._home, self._settings, self._measured.known())

    def _search(self, words: str) -> events_models.HubResults:
        models, machine = hub_search.search(words), self._measured.known()
        offers = model_offers.of_hub(models, machine, model_offers.suggested(machine, self._settings))
        return events_models.HubResults(words=words, models=offers)

    async def _decide(self, choice: commands.TrainingChoice) -> None:
        how = "Beginning anew" if choice == "anew" else "Going on"
        try:
            noted = await asyncio.to_thread(training_choice.note, self._home, self._chosen, choice)
        except training_choice.NothingToDecideError:
            if self._current() is not None:  # it is trained
                raise
            self._restart(f"Going on with {_display_name(self._chosen)}.", lambda: None)  # the old files are back
            return
        self._restart(f"{how} with {_display_name(self._chosen)}.", partial(noted.unlink, missing_ok=True))

    async def _choose(self, model: ModelSettings) -> None:
        """Begin to download a model that is not here, or to convert a GGUF file; else check it, and train it from now on."""
        if model == self._chosen == self._next:
            raise EngineError("This model is trained already.")
        if model.name and not model_source.is_here(model.name):
            commit = checkpoint.commit_of(model_source.home_of(self._home, model).model.checkpoints, model.name)
            self._download.begin(model, commit)
            return
        if await asyncio.to_thread(model_source.unconverted, model) is not None:
            self._download.begin(model, "")
            return
        await self.check(model)
        self.begin(model)
        self._download.dismiss(model)

    async def check(self, model: ModelSettings) -> None:
        """Check a model that is here. Raises WaggleError if it cannot be trained, or if another was chosen meanwhile."""
        self._checking = model
        folder = model_source.folder_of(model)
        if model != ModelSettings() and model != self._chosen:
            await asyncio.to_thread(inspector.inspect, folder)
            await asyncio.to_thread(self.examine, folder)
        if self._checking != model:
            raise EngineError("Another model was chosen meanwhile.")

    def examine(self, folder: Path) -> None:
        """Raise ModelError if a model of which at least the configuration is here does not fit. Not for the loop's thread."""
        try:
            machine = self._measured.known() or (self._measured.wait() if self._measured.wait else None)
        except (RuntimeError, TimeoutError):  # the engine is restarting, or stands still; its next start checks the same
            return
        if machine is not None:
            model_check.check_configuration(folder, machine, self._settings)

    def begin(self, model: ModelSettings) -> None:
        """Train a model that was checked, from now on."""
        OpeningNote(self._home).forget_failure()
        self._write_record(None)
        back = self._change(_as_settings(model))
        self._next = model
        self._restart(f"Going on with {_display_name(model)}.", back)

    def _write_record(self, before: ModelSettings | None) -> None:
        """Update `models.json`. The home's own training stays that of its first model, whatever is chosen later."""
        known = model_source.read_record(self._home)
        if known is None and self._home.model_root is not None:  # the home's own training is of an unknown other model
            return
        first = known or model_source.ModelRecord(folder=self._chosen.folder, name=self._chosen.name)
        now = structs.replace(first, before=before or first.before)
        if now == known:
            return
        try:
            paths.write_atomically(self._home.root / "models.json", msgspec.json.encode(now))
        except OSError as error:
            raise ModelError(Message("The choice cannot be kept: %1.", fault_of(error).reason), fault_of(error).advice) from error

    def _remove(self, name: str) -> None:
        if name == self._chosen.name:
            raise EngineError("This model is trained now.", "Choose another one first.")
        if name == self._download.name:
            raise EngineError("This model is being downloaded.", "Cancel the download first.")
        remove_model(name)

    def _export(self, folder: Path, for_programs: bool) -> events_models.ModelExported:
        if not folder.is_absolute():
            raise ExportError("The folder of an export is named by its whole path.")
        with exporting.trained_now(self._home, self._chosen, self._current()) as (trained, not_now):
            written = export.write(trained, folder, for_programs=for_programs)
        return events_models.ModelExported(
            path=str(folder), rounds=trained.saved.round, not_now=not_now, gguf=written.gguf, no_gguf=written.no_gguf
        )


def _display_name(chosen: ModelSettings) -> str:
    return chosen.name or (Path(chosen.folder).name if chosen.folder else "the starter")
