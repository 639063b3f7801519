"""`waggle completion`: print a script with which a shell completes commands, options, files and the names of settings."""

import argparse
import shlex
from collections.abc import Iterator
from typing import Any

from waggle.cli.preferences.types import setting_types
from waggle.cli.shared.lazy_parser import LazyParser
from waggle.cli.shared.printing import say

SHELLS = ("bash", "zsh", "fish")
INSTALL = """\
bash: waggle completion bash > ~/.local/share/bash-completion/completions/waggle
zsh:  waggle completion zsh > a file _waggle in a folder of your fpath
fish: waggle completion fish > ~/.config/fish/completions/waggle.fish"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"Where to store it:\n{INSTALL}"
    parser.add_argument("shell", choices=SHELLS)


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    return say(script(arguments.whole, arguments.shell))


def script(root: argparse.ArgumentParser, shell: str) -> str:
    """The script for a shell. All commands of the parser are imported."""
    import shtab

    keys = [setting.key for setting in setting_types()]
    by_metavar = {
        "FILE": shtab.FILE, "FOLDER": shtab.DIRECTORY, "SECTION.NAME": _words(keys),
        "SECTION.NAME=VALUE": _words([f"{key}=" for key in keys]),
        "SECTION": _words(list(dict.fromkeys(key.partition(".")[0] for key in keys))),
    }  # fmt: skip
    for parser in _parsers(root):
        for action in parser._actions:
            if isinstance(action.metavar, str) and action.metavar in by_metavar:
                action.complete = by_metavar[action.metavar]  # type: ignore[attr-defined]  # where shtab looks for it
    return str(shtab.complete(root, shell))


def _words(words: list[str]) -> Any:
    """What completes one of these words, in each shell."""
    import shtab

    return shtab.cmd(f"printf '%s\\n' {shlex.join(words)}")


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser and those of all its commands, with all their arguments."""
    if isinstance(parser, LazyParser):
        parser.complete()
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _parsers(command)
