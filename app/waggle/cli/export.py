"""`waggle export`: write the newest saved state as a plain transformers folder, or push it to the hub."""

import argparse
import sys
import tempfile
from pathlib import Path

from waggle.cli.options import add_home, add_settings
from waggle.core import hub_token, paths, settings
from waggle.core.errors import ExportError, TokenError
from waggle.engine.services.export import newest_trained
from waggle.models.storage import export


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_settings(parser)
    parser.add_argument("folder", type=Path, nargs="?", metavar="FOLDER", help="a new or empty one")
    parser.add_argument("--no-gguf", action="store_true", help="without the file for llama.cpp, Ollama, LM Studio and others")
    parser.add_argument("--push", metavar="OWNER/NAME", help="upload it to the model hub, with the token of `waggle token`")


def run(arguments: argparse.Namespace) -> int:
    """Write the folder, push it, or both. Raises WaggleError before it writes anything."""
    if not (arguments.folder or arguments.push):
        raise ExportError("Where to?", "Name a folder, or a repository of yours: `waggle export --push owner/name`.")
    token = _token(arguments.push) if arguments.push else None
    home = paths.home_in(arguments.home)
    trained = newest_trained(home, settings.read(home.settings, tuple(arguments.set)).model)
    with tempfile.TemporaryDirectory() as temporary:
        named = arguments.push.split("/")[1] if arguments.push else ""
        folder = paths.expand_user(arguments.folder).absolute() if arguments.folder else Path(temporary) / named
        written = export.write(trained, folder, for_programs=bool(arguments.folder) and not arguments.no_gguf)
        if arguments.folder:
            count = trained.saved.round
            sys.stdout.write(f"Written to {folder}: {count} round{'s' if count != 1 else ''} of training.\n")
            if written.gguf:
                sys.stdout.write(f"{written.gguf} there is for llama.cpp, Ollama, LM Studio and others.\n")
            elif written.no_gguf:
                sys.stdout.write(f"Without a GGUF file: {written.no_gguf}\n")
        if token:
            page = export.push(folder, arguments.push, token)
            sys.stdout.write(f"Pushed to {page}: a new model there is private until you make it public.\n")
    return 0


def _token(name: str) -> str:
    export.require_name(name)
    token = hub_token.stored_token()
    if token is None:
        raise TokenError("Pushing needs a token of yours.", f"{hub_token.WHERE} Then store it with `waggle token`.")
    return token
