"""The command line: `waggle` opens the window, and `waggle COMMAND` runs one of the commands below.

Each command is a module of this package with `add_arguments(parser)` and `run(arguments)`. It is imported only when it is chosen,
so that the window and other commands start without it.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any, Protocol

from waggle import __version__
from waggle.cli import window
from waggle.cli.shared.outcome import exit_code, open_streams
from waggle.core import pasted_link, paths

COMMANDS = {  # -> what `waggle --help` says about it
    "engine": "contribute without a window; prints events as JSON lines",
    "seed": "help others find the swarm; trains nothing",
    "ctl": "control a running engine",
    "swarm": "list, create and join swarms, preview your own questions for one, write an invite",
    "identity": "write, check or restore a backup of who you are, while no engine runs",
    "export": "write the trained model as a transformers folder, or push it to the hub",
    "token": "store your token of the model hub in the keychain of this computer",
    "model": "list models here and suggested ones, search the hub, choose one to train",
    "fit": "say whether a model can be trained on this computer, how, and how fast",
    "selftest": "play three rounds alone with the starter, to see whether this computer can take part",
    "doctor": "check everything, and print a report without names of people, keys or addresses",
    "log": "print what was logged, oldest first",
    "history": "print every round as numbers: a table, or JSON lines",
    "update": "ask whether a newer version exists; installs nothing",
    "cuda": "use an NVIDIA graphics card: say what it takes, download it, or remove it",
    "goodbye": "list what Waggle keeps on this computer, and remove what you choose",
    "race": "train two small practice swarms on this computer, one alone and one sharing, as JSON lines",
}


class Command(Protocol):
    """What the module of a command offers."""

    def add_arguments(self, parser: argparse.ArgumentParser, /) -> None: ...

    def run(self, arguments: argparse.Namespace, /) -> int: ...


def main(argv: list[str] | None = None) -> int:
    """Parse the arguments and run one command. Returns the exit code."""
    open_streams()
    arguments = parse(sys.argv[1:] if argv is None else argv)
    return exit_code(
        lambda: arguments.run(arguments),
        home=lambda: paths.home_in(arguments.home).root,
        show=window.show_refused if arguments.run is window.run else None,
    )


def parse(words: list[str]) -> argparse.Namespace:
    """The arguments of one command. A `--set` before the command counts, too, unless one after it has the same name."""
    root = parser()
    # A web page could add options for us to its link. A browser starts us without the command that a person types.
    if words[:2] != ["swarm", "join"] and any(map(pasted_link.SCHEME.match, words[:-1])):
        root.error("nothing may stand behind a link")
    arguments = root.parse_args(_with_invite(words))
    if arguments.set_before and not arguments.takes_settings:
        root.error("--set would do nothing there")
    arguments.set = arguments.set_before + arguments.set
    return arguments


def parser() -> argparse.ArgumentParser:
    """The parser of `waggle`. A command adds its own arguments when it is chosen."""
    root = argparse.ArgumentParser(prog="waggle", description="Let your computer learn with others.")
    root.set_defaults(home=None, set=[], set_before=[], verbose=False, run=window.run)
    root.add_argument("--version", action="version", version=f"waggle {__version__}")
    window.add_arguments(root)
    commands = root.add_subparsers(title="commands", metavar="COMMAND", parser_class=_CommandParser)
    for name, summary in COMMANDS.items():
        commands.add_parser(name, help=summary, command=name)
    return root


class _CommandParser(argparse.ArgumentParser):
    """The parser of a command, which imports it and adds its arguments at first use, when the command has been chosen."""

    def __init__(self, *, command: str, **options: Any) -> None:
        super().__init__(**options)
        self._command: str | None = command

    def parse_known_args(  # type: ignore[override]  # typeshed has overloads that argparse itself does not need
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        if self._command is not None:
            command, self._command = _import_command(self._command), None
            self.set_defaults(run=command.run, takes_settings=False)
            command.add_arguments(self)
        return super().parse_known_args(args, namespace)


def _import_command(name: str) -> Command:
    """The module of a command. Each import is written out, for type checkers and for the packer of the installers."""
    match name:
        case "engine":
            from waggle.cli import engine

            return engine
        case "seed":
            from waggle.cli import seed

            return seed
        case "ctl":
            from waggle.cli import ctl

            return ctl
        case "swarm":
            from waggle.cli import swarm

            return swarm
        case "identity":
            from waggle.cli import identity

            return identity
        case "export":
            from waggle.cli import export

            return export
        case "token":
            from waggle.cli import token

            return token
        case "model":
            from waggle.cli import model

            return model
        case "fit":
            from waggle.cli import fit

            return fit
        case "selftest":
            from waggle.cli import selftest

            return selftest
        case "doctor":
            from waggle.cli import doctor

            return doctor
        case "log":
            from waggle.cli import log

            return log
        case "history":
            from waggle.cli import history

            return history
        case "update":
            from waggle.cli import update

            return update
        case "cuda":
            from waggle.cli import cuda

            return cuda
        case "goodbye":
            from waggle.cli import remove_data

            return remove_data
        case "race":
            from waggle.cli import race

            return race
    raise AssertionError(name)


def _with_invite(words: list[str]) -> list[str]:
    """The words with `--invite` before a link or file, which operating systems pass in the place of a command."""
    at = 0
    while at < len(words) and words[at].startswith("--"):  # an option of the window, and its value if it has one
        at += 1 if "=" in words[at] or words[at] == "--verbose" else 2
    stands = at < len(words) and _is_invite(words[at])
    return [*words[:at], "--invite", *words[at:]] if stands else words


def _is_invite(argument: str) -> bool:
    return bool(pasted_link.SCHEME.match(argument)) or argument.lower().endswith(".waggle")
