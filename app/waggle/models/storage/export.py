"""Export: a checkpoint as a plain transformers folder, with adapters merged into the weights; and its upload to the hub."""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from safetensors import SafetensorError

from waggle.core import connection_faults
from waggle.core.errors import ExportError
from waggle.core.message import NOTHING, Message, in_turn
from waggle.core.system import file_moves
from waggle.core.system.os_faults import fault_of
from waggle.models.shared import generic_config, lora, weight_files
from waggle.models.shared.configuration import model_config
from waggle.models.shared.generic_config import GenericConfig
from waggle.models.shared.mlx_lm.config import MlxLmConfig
from waggle.models.shared.training_mode import ADAPTED
from waggle.models.storage import adapter_export, export_precision, gguf_export
from waggle.models.storage.checkpoint import ADAPTERS, CheckpointState
from waggle.models.storage.hub_download import WORDS, model_of

CONFIG = "config.json"
REMEDY = "Nothing was pushed."


@dataclass(frozen=True)
class ExportSource:
    """A checkpoint to export, with the folder and the name of the model that it began from."""

    checkpoint: Path
    saved: CheckpointState
    base: Path
    base_name: str


@dataclass(frozen=True)
class ExportedFiles:
    """What an export contains besides the folder: the name of its GGUF file, or why there is none, in one sentence."""

    gguf: str = ""
    no_gguf: Message = NOTHING


def write(trained: ExportSource, folder: Path, *, for_programs: bool = False) -> ExportedFiles:
    """Write the folder, completely or not at all. Adapters are merged into the weights, and also written alone.

    With `for_programs`, one GGUF file more, if this kind of model can be written as one.

    Raises ExportError if it is not empty or the disk is full, and ModelError if the base model is gone.
    """
    require_free(folder)
    writing = folder.with_name(f".writing-{folder.name}-{os.getpid()}")
    try:
        file_moves.remove_tree(writing, ignore_errors=True)
        writing.mkdir(parents=True)
        for name in WORDS:
            if (trained.base / name).is_file():
                shutil.copyfile(trained.base / name, writing / name)
        _write_model(trained, writing)
        if trained.saved.method in ADAPTED:
            adapter_export.write(trained.checkpoint / ADAPTERS, trained.base_name, writing / adapter_export.FOLDER)
        files = _write_gguf(writing, folder.name) if for_programs else ExportedFiles()
        (writing / "README.md").write_text(card(trained, folder.name), encoding="utf-8")
        if folder.is_dir():
            folder.rmdir()  # Windows does not rename over an existing folder
        file_moves.rename(writing, folder)
    except (OSError, SafetensorError) as error:
        why = fault_of(error).reason if isinstance(error, OSError) else error
        advice = fault_of(error).advice if isinstance(error, OSError) else "Choose another folder."
        raise ExportError(Message("%1 cannot be written: %2.", folder, why), advice) from error
    finally:
        file_moves.remove_tree(writing, ignore_errors=True)
    return files


def _write_gguf(folder: Path, name: str) -> ExportedFiles:
    if refusal := gguf_export.refusal(folder):
        return ExportedFiles(no_gguf=refusal)
    file = f"{name}.gguf"
    gguf_export.write(folder, folder / file, name)
    return ExportedFiles(gguf=file)


def require_free(folder: Path) -> None:
    """Raise ExportError unless the folder is new or empty."""
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise ExportError(
            Message("There is something in %1 already.", folder), "Choose a new folder: nothing is ever overwritten."
        )


def _write_model(trained: ExportSource, folder: Path) -> None:
    """Write the weights, and the configuration with their precision."""
    configuration = generic_config.read_any(trained.base)
    library = trained.saved.library or ("mlx-lm" if isinstance(configuration, MlxLmConfig) else "")
    if library == "mlx-lm":
        from waggle.models.storage import mlx_export

        mlx_export.write_model(trained.base, trained.checkpoint, folder, adapted=trained.saved.method in ADAPTED)
        return
    if library == "transformers" or isinstance(configuration, GenericConfig):
        from waggle.models.storage import generic_export

        generic_export.write_model(trained.base, trained.checkpoint, folder, adapted=trained.saved.method in ADAPTED)
        return
    path, config = folder / weight_files.WEIGHTS, trained.base / CONFIG
    if trained.saved.method in ADAPTED:
        _fuse(trained, path)
        shutil.copyfile(config, folder / CONFIG)
        return
    shutil.copyfile(trained.checkpoint / weight_files.WEIGHTS, path)  # bit for bit as trained
    (precision,) = {weight.precision for weight in weight_files.arrays_in(path).values()}
    table = export_precision.named_in(model_config.table_in(config), precision)
    (folder / CONFIG).write_text(json.dumps(table, indent=2), encoding="utf-8")


def _fuse(trained: ExportSource, path: Path) -> None:
    """Write the base's weights plus the adapters, each in the precision that it has in the base."""
    base = weight_files.of_model(trained.base, model_config.read(trained.base).weights())
    learned = weight_files.load(trained.checkpoint / ADAPTERS)

    def fused(name: str) -> NDArray[Any]:
        module, weight = name.removesuffix(".weight"), base[name].read()
        if lora.names(module)[0] not in learned:
            return weight
        whole = lora.fuse(module, weight_files.as_fp32(weight), learned)
        return export_precision.rounded(name, whole, base[name].precision)

    weight_files.write(path, {name: (base[name].precision, base[name].shape) for name in base}, fused)


def card(trained: ExportSource, name: str) -> str:
    """The README of an exported model: its origin and training."""
    saved = trained.saved
    from_hub = f"base_model: {trained.base_name}\n" if "/" in trained.base_name else ""
    return f"""---
library_name: transformers
pipeline_tag: text-generation
{from_hub}tags:
- waggle
- reinforcement-learning
---

# {name}

A language model that learned by reinforcement learning in a swarm of ordinary computers, with Waggle: it answered questions that
a program can check, and was trained on its own answers and on those that peers shared as plain text
(SAPO, [arXiv 2509.08721](https://arxiv.org/abs/2509.08721)).

| | |
| --- | --- |
| began as | {trained.base_name} |
| rounds trained | {saved.round} |
| optimiser steps | {saved.step} |
| own completions | {saved.completions} |
| charter of the swarm | `{saved.charter}` |

It was rewarded for right answers to those questions and for nothing else. The licence is that of the model it began as.
"""


def push(folder: Path, name: str, token: str, endpoint: str | None = None) -> str:
    """Upload a folder as one commit and return the page's address. A new repository is private. Raises ExportError."""
    import httpx2
    from huggingface_hub import CommitOperationAdd, HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    connection_faults.require_usable_settings(ExportError, hub=True)
    api = HfApi(endpoint=endpoint, token=token)
    try:
        page = api.create_repo(name, private=True, exist_ok=True)
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        files = [CommitOperationAdd(path.relative_to(folder).as_posix(), path) for path in paths]
        api.create_commit(name, files, commit_message="Trained with Waggle")
    except HFValidationError as error:
        raise ExportError(Message("%1 is no name for a model.", name), REMEDY) from error
    except HfHubHTTPError as error:
        if cause := connection_faults.cause_of(error):
            raise ExportError(cause.title, in_turn(REMEDY, cause.advice)) from error
        if error.response.status_code in (401, 403):
            raise ExportError(
                Message("Your Hugging Face token may not write to %1.", name),
                in_turn(REMEDY, Message("Make a token with write access to it, and store it with `waggle token`.")),
            ) from error
        raise ExportError(
            Message("Hugging Face answered %1.", error.response.status_code), in_turn(REMEDY, Message("Try again later."))
        ) from error
    except (httpx2.RequestError, OfflineModeIsEnabled) as error:
        if cause := connection_faults.cause_of(error):
            raise ExportError(cause.title, in_turn(REMEDY, cause.advice)) from error
        raise ExportError("Hugging Face cannot be reached.", REMEDY) from error
    except RuntimeError as error:  # hf_xet has no exception classes of its own
        raise ExportError(Message("The upload failed: %1.", error), in_turn(REMEDY, Message("Try again later."))) from error
    return str(page)


def require_name(name: str) -> None:
    """Raise ExportError for a name with a revision, and ModelError if it is no name of a repository."""
    if "@" in name:
        raise ExportError(Message("%1 names a revision.", name), "Push to owner/name.")
    model_of(name, Path())
