"""`waggle fit`: say whether and how a model can be trained on this computer. Downloads everything of a model but its weights."""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from waggle.cli.shared.model_argument import model_of
from waggle.cli.shared.options import add_home, add_settings
from waggle.cli.shared.printing import add_json, say_json
from waggle.core import hub_token, paths, settings
from waggle.core.message import Message
from waggle.core.settings import ModelSettings
from waggle.engine.runtime import model_fit, model_source
from waggle.models.gguf import conversion
from waggle.models.inspection import inspector
from waggle.models.shared import generic_config
from waggle.models.storage import hub_download


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_settings(parser)
    add_json(parser)
    parser.add_argument(
        "model", nargs="?", metavar="MODEL", help="a folder, a name or an address of the hub (default: the starter)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print how a model can be trained here. Raises ModelError, also for a model that cannot be opened."""
    home = paths.home_in(arguments.home)
    chosen = settings.read(home.settings, tuple(arguments.set))
    with _folder_of(arguments.model) as folder:
        report = inspector.inspect(folder)
        fit = model_fit.fit_model(model_fit.measure_machine(chosen), generic_config.read_any(folder), chosen)
    no_chat = report.template.problem if report.template is not None else ""
    if arguments.json:
        return say_json({"fits": fit.fits, "answers_an_hour": fit.answers_an_hour, "says": fit.sentence, "no_chat": no_chat})
    sys.stdout.write(f"{fit.sentence}\n")
    if no_chat:
        words = Message("Its chat template cannot be used, so it is trained in plain text, without chat: %1.", no_chat)
        sys.stdout.write(f"{words}\n")
    return 0


@contextmanager
def _folder_of(model: str | None) -> Iterator[Path]:
    """The folder of a model. For a model of the hub, or a GGUF file, it is a temporary one without weights."""
    named = model_of(model) if model else ModelSettings()
    if not named.name and (file := model_source.unconverted(named)) is not None:
        with tempfile.TemporaryDirectory(prefix="waggle-fit-") as scratch:
            conversion.write_headers(file, Path(scratch))
            yield Path(scratch)
        return
    if not named.name:
        yield model_source.folder_of(named)
        return
    known = hub_download.model_of(named.name, paths.models()).folder
    if known.is_dir():
        yield known
        return
    paths.models().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fit-", dir=paths.models()) as scratch:
        yield hub_download.fetch_headers(named.name, Path(scratch), warn=_warn, token=hub_token.stored_token)


def _warn(what: str) -> None:
    sys.stderr.write(f"{what}\n")
