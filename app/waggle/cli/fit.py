"""`waggle fit`: say whether and how a model can be trained on this computer. Downloads only the model's configuration."""

import argparse
import sys
from pathlib import Path

from waggle.cli.model_argument import model_of
from waggle.cli.options import add_home, add_settings
from waggle.core import hub_token, paths, settings
from waggle.core.errors import ModelError
from waggle.core.settings import ModelSettings
from waggle.engine.runtime import model_check, model_fit
from waggle.models import tokenizer
from waggle.models.shared import generic_config
from waggle.models.shared.model_config import ModelConfig
from waggle.models.storage import hub_download


class _ConfigurationArrived(Exception):
    """Ends a download: the configuration has arrived, and nothing else is needed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_settings(parser)
    parser.add_argument(
        "model", nargs="?", metavar="MODEL", help="a folder, a name or an address of the hub (default: the starter)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print how a model can be trained here. Raises ModelError."""
    home = paths.home_in(arguments.home)
    chosen = settings.read(home.settings, tuple(arguments.set))
    named = model_of(arguments.model) if arguments.model else ModelSettings()
    folder = _folder_of(named)
    model = generic_config.read_any(folder) if folder.is_dir() or not named.name else _of_the_hub(named.name)
    no_chat = tokenizer.load(folder, rows=model.vocab_size).chat_problem if folder.is_dir() else ""
    sys.stdout.write(f"{model_fit.fit_model(model_fit.measure_machine(chosen), model, chosen).sentence}\n")
    if no_chat:
        sys.stdout.write(f"Its chat template cannot be used, so it is trained in plain text, without chat: {no_chat}.\n")
    return 0


def _folder_of(model: ModelSettings) -> Path:
    """The folder of a model that is on this computer, or where it would be."""
    if model.name:
        return hub_download.model_of(model.name, paths.models()).folder
    return Path(model.folder) if model.folder else paths.starter()


def _of_the_hub(name: str) -> ModelConfig:
    configurations: list[ModelConfig] = []

    def enough(unfinished: Path) -> None:
        configurations.append(model_check.configuration_of(unfinished))
        raise _ConfigurationArrived

    try:
        hub_download.fetch(name, paths.models(), lambda _, __: None, warn=_warn, token=hub_token.stored_token, examine=enough)
    except _ConfigurationArrived:
        return configurations[0]
    raise ModelError(f"{name} has no configuration.", "Choose a complete transformers model.")


def _warn(what: str) -> None:
    sys.stderr.write(f"{what}\n")
