"""The models that a person can train: those on this computer, with what they learned, and those that Waggle suggests."""

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from waggle.core import paths
from waggle.core.errors import ModelError
from waggle.core.message import Message
from waggle.core.model_reference import NAME
from waggle.core.settings import ModelSettings, Settings
from waggle.engine.runtime import model_fit, model_offers, model_source
from waggle.engine.storage import history
from waggle.models.memory_fit import DeviceCapacity
from waggle.models.storage import checkpoint, hub_cache, hub_download
from waggle.protocol.events_models import ModelDetails, ModelList


def list_models(home: paths.Home, chosen: Settings, machine: DeviceCapacity | None) -> ModelList:
    """The starter, the chosen model, and all of the hub that are here. `machine` is None until this computer was measured."""
    active = ModelSettings(name=chosen.model.name, folder=chosen.model.folder)
    here = [ModelSettings(), *([active] if active.folder else []), *_downloaded_models(paths.models())]
    if active.name and active not in here:
        here.append(active)

    def describe(model: ModelSettings) -> ModelDetails:
        finished, folder = True, Path(os.path.expanduser(model.folder)) if model.folder else paths.starter()
        if model.name:
            known = hub_download.model_of(model.name, paths.models())
            finished = known.folder.is_dir()
            folder = known.folder if finished else known.unfinished
        elif model.folder:
            with suppress(ModelError):  # broken or gone: it has no size and no fit then; of a GGUF file, what it was converted to
                folder = model_source.folder_of(model)
        # if no model was ever chosen here, no other has training
        elsewhere = model_source.read_record(home) is None and model != active
        return ModelDetails(
            kind="hub" if model.name else "folder" if model.folder else "starter",
            name=model.name,
            folder=model.folder,
            bytes=sum(map(_size, folder.glob("*"))),
            finished=finished,
            active=model == active,
            rounds=0 if elsewhere else _rounds(model_source.home_of(home, model).model),
            fit=model_fit.fit_sentence(machine, chosen, folder) if machine else Message(""),
        )

    place = next(folder for folder in (paths.models(), home.root, *home.root.absolute().parents) if folder.is_dir())
    return ModelList(
        models=tuple(map(describe, here)), cache=str(paths.models()), free=shutil.disk_usage(place).free,
        suggested=model_offers.suggested(machine, chosen),
    )  # fmt: skip


def _rounds(files: paths.ModelFiles) -> int:
    """The rounds that a model was trained for. The newest ones are not in a checkpoint yet, and a restored one has no history."""
    return max(checkpoint.rounds(files.checkpoints), history.rounds_played(files.history))


def _size(path: Path) -> int:
    try:
        status = path.stat()
    except OSError:  # a download moves its files while they are counted
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _downloaded_models(cache: Path) -> list[ModelSettings]:
    """The models of the hub on this computer, complete or not."""
    names = set()
    for folder in cache.glob("*/*"):
        if folder.is_dir():
            names.add(f"{folder.parent.name}/{hub_cache.name_of(folder)}")
    return [ModelSettings(name=name) for name in sorted(names) if NAME.fullmatch(name)]
