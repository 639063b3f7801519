"""`waggle export`: write the model of now as a plain transformers folder, or push it to the hub.

If an engine trains it, that engine writes it; else it is the newest saved state.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from waggle.cli.shared.engine import ask, status
from waggle.cli.shared.options import add_home, add_settings
from waggle.cli.shared.printing import add_json, say_json
from waggle.core import hub_token, paths, settings
from waggle.core.errors import EngineError, ExportError, TokenError
from waggle.core.message import NOTHING, counted
from waggle.core.settings import ModelSettings
from waggle.engine.services.models.export import newest_trained
from waggle.models.storage import export, training_journal
from waggle.protocol import commands
from waggle.protocol.events_models import ModelExported

EXPORT_SECONDS = 3600.0  # for a running engine to write a large model to a slow disk


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_settings(parser)
    add_json(parser)
    parser.add_argument("folder", type=Path, nargs="?", metavar="FOLDER", help="a new or empty one")
    parser.add_argument("--no-gguf", action="store_true", help="without the file for llama.cpp, Ollama, LM Studio and others")
    parser.add_argument("--push", metavar="OWNER/NAME", help="upload it to the model hub, with the token of `waggle token`")


def run(arguments: argparse.Namespace) -> int:
    """Write the folder, push it, or both. Raises WaggleError before it writes anything."""
    if not (arguments.folder or arguments.push):
        raise ExportError("Where to?", "Name a folder, or a repository of yours: `waggle export --push owner/name`.")
    token = _token(arguments.push) if arguments.push else None
    home = paths.home_in(arguments.home)
    chosen = settings.read(home.settings, tuple(arguments.set)).model
    with tempfile.TemporaryDirectory() as temporary:
        named = arguments.push.split("/")[1] if arguments.push else ""
        folder = paths.expand_user(arguments.folder).absolute() if arguments.folder else Path(temporary) / named
        exported = _export(home, chosen, folder, gguf=bool(arguments.folder) and not arguments.no_gguf)
        page = export.push(folder, arguments.push, token) if token and arguments.json else ""
        if arguments.json:
            return say_json({"folder": str(folder) if arguments.folder else "", "rounds": exported.rounds, "gguf": exported.gguf,
                             "no_gguf": exported.no_gguf, "not_now": exported.not_now, "page": page})  # fmt: skip
        if arguments.folder:
            count = exported.rounds
            sys.stdout.write(f"Written to {folder}: {count} round{'s' if count != 1 else ''} of training.\n")
            if exported.gguf:
                sys.stdout.write(f"{exported.gguf} in it is for llama.cpp, Ollama, LM Studio and others.\n")
            elif exported.no_gguf:
                sys.stdout.write(f"Without a GGUF file: {exported.no_gguf}\n")
        if exported.not_now:
            sys.stdout.write(f"This is the newest saved state. {exported.not_now}\n")
        if token:
            page = export.push(folder, arguments.push, token)
            sys.stdout.write(f"Pushed to {page}: a new model there is private until you make it public.\n")
    return 0


def _export(home: paths.Home, chosen: ModelSettings, folder: Path, *, gguf: bool) -> ModelExported:
    """Write the model of now. Raises WaggleError."""
    if _is_trained_now(home, chosen):
        answers = ask(home, commands.ExportModel(id=commands.new_id(), path=str(folder), gguf=gguf), EXPORT_SECONDS)
        return next(answer for answer in answers if isinstance(answer, ModelExported))
    trained = newest_trained(home, chosen)
    written = export.write(trained, folder, for_programs=gguf)
    later = sum(1 for _ in training_journal.entries(trained.checkpoint.parent, trained.saved.round, trained.saved.base))
    not_now = counted(
        later,
        "%n later round will be learned again at the next start, because the engine was killed.",
        "%n later rounds will be learned again at the next start, because the engine was killed.",
    )
    return ModelExported(
        path=str(folder),
        rounds=trained.saved.round,
        not_now=not_now if later else NOTHING,
        gguf=written.gguf,
        no_gguf=written.no_gguf,
    )


def _is_trained_now(home: paths.Home, chosen: ModelSettings) -> bool:
    """Whether an engine of this home trains this model."""
    try:
        state = status(home)
    except EngineError:  # none runs, or none answers
        return False
    trained = state.settings.model if state.settings is not None and state.ready is not None else None
    return trained is not None and (trained.name, trained.folder) == (chosen.name, chosen.folder)


def _token(name: str) -> str:
    export.require_name(name)
    token = hub_token.stored_token()
    if token is None:
        raise TokenError("Pushing needs a token of yours.", f"Make one on {hub_token.TOKENS}. Then store it with `waggle token`.")
    return token
