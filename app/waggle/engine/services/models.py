"""Models: those on this computer. One is chosen and trained, each keeps what it has learned, and any can be exported.

What is trained of a model stands in the home itself, or, for those chosen later, in a folder of their own below it.
"""

import asyncio
import os
import shutil
import stat
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import assert_never

import msgspec
from msgspec import structs

from waggle.core import paths
from waggle.core.errors import EngineError, ExportError, ModelError, VerifierError
from waggle.core.settings import ModelSettings, Settings, Value
from waggle.engine.control.command_queue import NOT_CAUSED_BY_EITHER, NOT_CAUSED_BY_MODEL, UndoStep
from waggle.engine.runtime import model_source
from waggle.engine.services import export as exporting
from waggle.models.storage import checkpoint, export, hub_cache, hub_download
from waggle.protocol import commands
from waggle.protocol import events_models as events_models

Restart = Callable[[str, Callable[[], object]], None]  # the reason, and how to take it back where it cannot be done
NOT_CAUSED_BY_CHOICE = (*NOT_CAUSED_BY_MODEL, *NOT_CAUSED_BY_EITHER, VerifierError)  # of one that was chosen before a start
WHERE_TO_CHOOSE = "Choose another on the page Swarms, under Models."
PROGRESS_STAYS = "What this model has learned is kept."
Change = Callable[[Mapping[str, Value]], Callable[[], object]]  # of settings; what is returned takes it back

Fits = Callable[[Path], str]  # whether the model in a folder fits this computer, in a sentence


def undo_steps(home: paths.Home, chosen: ModelSettings, change: Change) -> list[UndoStep]:
    """At a start: to the model that a round was played with last, and from that one, where it is here no more, to the starter."""
    known, now = model_source.read_record(home), _plain(chosen)
    if known is None or known.before is None:
        return []
    if known.before != now:
        return [UndoStep(partial(change, _named(known.before)), NOT_CAUSED_BY_CHOICE, _instead(known.before), settles=True)]
    try:
        model_source.folder_of(now)
    except ModelError:
        says = f"{_instead(ModelSettings())} {PROGRESS_STAYS}"
        return [UndoStep(partial(change, _named(ModelSettings())), NOT_CAUSED_BY_CHOICE, says, settles=True)]
    return []


def _instead(other: ModelSettings) -> str:
    """Said of the one that the settings name by then: that the failure advises to mend them leads nowhere."""
    return f"{'The starter' if other == ModelSettings() else _words(other)} is trained instead. {WHERE_TO_CHOOSE}"


def _plain(chosen: ModelSettings) -> ModelSettings:
    """Which it is; how it is trained is no matter."""
    return ModelSettings(name=chosen.name, folder=chosen.folder)


def _named(model: ModelSettings) -> dict[str, Value]:
    return {"model.name": model.name or None, "model.folder": model.folder or None}


class ModelService:
    """Obeys the commands about models."""

    def __init__(
        self, home: paths.Home, chosen: Settings, change: Change, restart: Restart, fits: Future[Fits] | None = None
    ) -> None:
        """`fits` is completed once this computer has been measured, in any thread."""
        self._home, self._change, self._restart = home, change, restart
        self._chosen = self._next = _plain(chosen.model)  # the latter after the next start
        self._fits = fits or Future()

    async def obey(self, command: commands.ModelCommand) -> tuple[events_models.ModelEvent, ...]:
        """Raises WaggleError for what cannot be done; then nothing was changed."""
        match command:
            case commands.ListModels():
                return (await asyncio.to_thread(self._list),)
            case commands.ChooseModel():
                self._choose(ModelSettings(name=command.name, folder=command.folder))
                return ()
            case commands.RemoveModel():
                await asyncio.to_thread(self._remove, command.name)
                return (await asyncio.to_thread(self._list),)
            case commands.ExportModel():
                return (await asyncio.to_thread(self._export, paths.expand_user(command.path)),)
            case _:
                assert_never(command)

    def begun(self) -> None:
        """A round was played: this is the model that others are left for where they cannot be had."""
        with suppress(ModelError):  # the disk is full: what was before stays the way back
            self._write_down(self._chosen)

    def _list(self) -> events_models.ModelsTold:
        chosen = [ModelSettings(), *([self._chosen] if self._chosen.folder else [])]
        here = [*chosen, *_downloaded(paths.models())]
        if self._chosen.name and self._chosen not in here:
            here.append(self._chosen)
        place = paths.models() if paths.models().is_dir() else self._home.root
        return events_models.ModelsTold(
            models=tuple(self._describe(model) for model in here), cache=str(paths.models()), free=shutil.disk_usage(place).free
        )  # fmt: skip

    def _describe(self, model: ModelSettings) -> events_models.ModelShown:
        finished, folder = True, Path(os.path.expanduser(model.folder)) if model.folder else paths.starter()
        if model.name:
            known = hub_download.model_of(model.name, paths.models())
            finished = known.folder.is_dir()
            folder = known.folder if finished else known.unfinished
        elsewhere = model_source.read_record(self._home) is None and model != self._chosen  # nothing was ever switched
        return events_models.ModelShown(
            kind="hub" if model.name else "folder" if model.folder else "starter",
            name=model.name,
            folder=model.folder,
            bytes=sum(map(_size, folder.glob("*"))),
            finished=finished,
            active=model == self._chosen,
            rounds=0 if elsewhere else checkpoint.rounds(model_source.home_of(self._home, model).model.checkpoints),
            fit=self._fits.result()(folder) if self._fits.done() else "",
        )

    def _choose(self, model: ModelSettings) -> None:
        if model == self._chosen == self._next:
            raise EngineError("This model is trained already.")
        if model.name:
            hub_download.model_of(model.name, paths.models())
        else:
            model_source.folder_of(model)
        self._write_down(None)
        back = self._change(_named(model))
        self._next = model
        self._restart(f"Going on with {_words(model)}.", back)

    def _write_down(self, before: ModelSettings | None) -> None:
        """What lies in the home itself is the first one's, whatever is chosen later."""
        known = model_source.read_record(self._home)
        if known is None and self._home.model_root is not None:  # it is another's, nobody knows whose
            return
        first = known or model_source.ModelRecord(folder=self._chosen.folder, name=self._chosen.name)
        now = structs.replace(first, before=before or first.before)
        if now == known:
            return
        try:
            paths.write_atomically(self._home.root / "models.json", msgspec.json.encode(now))
        except OSError as error:
            raise ModelError(f"The choice cannot be kept: {error.strerror}.", "Make room on the disk.") from error

    def _remove(self, name: str) -> None:
        if name == self._chosen.name:
            raise EngineError("This model is trained now.", "Choose another one first.")
        known = hub_download.model_of(name, paths.models())
        try:
            if known.unfinished.is_dir() and not hub_cache.drop(known.unfinished):
                raise ModelError(f"{name} is being downloaded by another program.", "Wait until that is done, then try again.")
            if known.folder.is_dir() and not hub_cache.remove(known.folder):
                raise ModelError(f"{name} is in use by another engine.", "Choose another model there first.")
        except OSError as error:
            raise ModelError(f"{name} cannot be removed: {error.strerror}.", "Close programs that use it.") from error

    def _export(self, folder: Path) -> events_models.ModelExported:
        if not folder.is_absolute():
            raise ExportError("The folder of an export is named by its whole path.")
        trained = exporting.newest(self._home, self._chosen)
        export.write(trained, folder)
        return events_models.ModelExported(path=str(folder), rounds=trained.saved.round)


def _size(path: Path) -> int:
    try:
        status = path.stat()
    except OSError:  # a download moves its files, also while they are counted
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _downloaded(cache: Path) -> list[ModelSettings]:
    """What of the hub is here, whole or begun."""
    names = set()
    for folder in cache.glob("*/*"):
        if folder.is_dir():
            names.add(f"{folder.parent.name}/{folder.name.removeprefix(hub_cache.UNFINISHED)}")
    return [ModelSettings(name=name) for name in sorted(names) if hub_download.NAME.fullmatch(name)]


def _words(chosen: ModelSettings) -> str:
    return chosen.name or (Path(chosen.folder).name if chosen.folder else "the starter")
