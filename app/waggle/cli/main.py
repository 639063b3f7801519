"""The command line: `waggle` opens the window, and `waggle COMMAND` runs one of the commands below.

Each command is a module of this package with `add_arguments(parser)` and `run(arguments)`. It is imported only when it is chosen,
so that the window and other commands start without it.
"""

import argparse
import sys
from functools import partial

from waggle import __version__
from waggle.cli import window
from waggle.cli.shared.lazy_parser import Command, LazyParser
from waggle.cli.shared.outcome import exit_code, open_streams
from waggle.core import paths
from waggle.core.system.machine import name_user
from waggle.core.text import pasted_link

COMMANDS = {  # -> what `waggle --help` says about it
    "engine": "contribute without a window: a line for each round, or events as JSON lines",
    "install-service": "contribute without a window from each login on, or no longer",
    "seed": "help others find the swarm; trains nothing",
    "status": "say what the engine does, and how well it learns",
    "why": "say why the engine contributes or waits, and why it learns little",
    "top": "watch the engine in a full-screen view",
    "pause": "pause the engine",
    "resume": "end a pause",
    "stop": "end the engine",
    "peers": "list the peers that this node knows",
    "mute": "learn nothing from a peer",
    "block": "learn nothing from a peer, and send it nothing",
    "welcome": "undo mute and block",
    "sent": "print the last messages that left this computer",
    "join": "look at the swarm of an invite, then join it",
    "invite": "print an invite to your swarm",
    "create": "create a swarm",
    "leave": "take part in no swarm any more",
    "swarms": "list the swarms that you know",
    "swarm": "all commands about swarms under one name; preview your own questions, forget a swarm",
    "models": "list models here and suggested ones, search the hub, choose one to train, remove one",
    "model": "the same",
    "export": "write the trained model as a transformers folder, or push it to the hub",
    "token": "store your Hugging Face token in the keychain of this computer",
    "fit": "say whether a model can be trained on this computer, how, and how fast",
    "try": "let the model answer a question on which it never trained",
    "chat": "chat with the model of now and an earlier one",
    "get": "print settings",
    "set": "change settings",
    "settings": "list all settings with their ranges, defaults and meanings",
    "identity": "say who you are; write, check or restore a backup of that; become somebody new",
    "history": "print every round as numbers: a table, or JSON lines",
    "runs": "list the runs of this node, with rewards and held-out scores",
    "compare": "compare two runs by reward and held-out score",
    "repeat": "play a run again from its file and compare every round; write that file",
    "days": "print what this computer contributed, day by day",
    "ctl": "the commands that control an engine under one name",
    "selftest": "play three rounds alone with the starter, to see whether this computer can take part",
    "doctor": "check everything, and print a report without names of people, keys or addresses",
    "log": "print what was logged, oldest first",
    "update": "ask whether a newer version exists; installs nothing",
    "cuda": "use an NVIDIA graphics card: say what it takes, download it, or remove it",
    "goodbye": "list what Waggle keeps on this computer, and remove what you choose",
    "completion": "print a script with which your shell completes commands: bash, zsh or fish",
    "race": "train two small practice swarms on this computer, one alone and one sharing, as JSON lines",
}
JOINS = (["join"], ["swarm", "join"])  # behind these, a link that a person typed


def main(argv: list[str] | None = None) -> int:
    """Parse the arguments and run one command. Returns the exit code."""
    open_streams()
    name_user()
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
    if not any(words[: len(join)] == join for join in JOINS) and any(map(pasted_link.SCHEME.match, words[:-1])):
        root.error("nothing may stand behind a link")
    arguments = root.parse_args(_with_invite(words))
    if arguments.set_before and not arguments.takes_settings:
        root.error("--set would do nothing there")
    arguments.set = arguments.set_before + arguments.set
    return arguments


def parser() -> argparse.ArgumentParser:
    """The parser of `waggle`. A command adds its own arguments when it is chosen."""
    root = argparse.ArgumentParser(prog="waggle", description="Let your computer learn with others.")
    root.set_defaults(home=None, set=[], set_before=[], verbose=False, run=window.run, whole=root)
    root.add_argument("--version", action="version", version=f"waggle {__version__}")
    window.add_arguments(root)
    commands = root.add_subparsers(title="commands", metavar="COMMAND", parser_class=LazyParser)
    for name, summary in COMMANDS.items():
        commands.add_parser(name, help=summary, load=partial(_import_command, name))
    return root


def _import_command(name: str) -> Command:
    """The module of a command. Each import is written out, for type checkers and for the packer of the installers."""
    match name:
        case "engine":
            from waggle.cli import engine

            return engine
        case "install-service":
            from waggle.cli import install_service

            return install_service
        case "seed":
            from waggle.cli import seed

            return seed
        case "ctl":
            from waggle.cli import ctl

            return ctl
        case "swarm" | "swarms":
            from waggle.cli.swarms import swarm

            return swarm
        case "identity":
            from waggle.cli import identity

            return identity
        case "export":
            from waggle.cli.models import export

            return export
        case "token":
            from waggle.cli.models import token

            return token
        case "model" | "models":
            from waggle.cli.models import model

            return model
        case "fit":
            from waggle.cli.models import fit

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
            from waggle.cli.rounds import history

            return history
        case "runs":
            from waggle.cli.rounds import runs

            return runs
        case "compare":
            from waggle.cli.rounds import compare

            return compare
        case "repeat":
            from waggle.cli.rounds import repeat

            return repeat
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
        case "status" | "why":
            from waggle.cli.control import status

            return status
        case "pause" | "resume":
            from waggle.cli.control import pause

            return pause
        case "stop":
            from waggle.cli.control import stop

            return stop
        case "peers" | "mute" | "block" | "welcome":
            from waggle.cli.control import peers

            return peers
        case "top":
            from waggle.cli.watch import top

            return top
        case "sent":
            from waggle.cli.control import sent

            return sent
        case "join":
            from waggle.cli.swarms import join

            return join
        case "invite":
            from waggle.cli.swarms import invite

            return invite
        case "create":
            from waggle.cli.swarms import create

            return create
        case "leave":
            from waggle.cli.swarms import leave

            return leave
        case "try":
            from waggle.cli.talk import try_model

            return try_model
        case "chat":
            from waggle.cli.talk import chat

            return chat
        case "get":
            from waggle.cli.preferences import get

            return get
        case "settings":
            from waggle.cli.preferences import reference

            return reference
        case "set":
            from waggle.cli.preferences import set as setting

            return setting
        case "completion":
            from waggle.cli import completion

            return completion
        case "days":
            from waggle.cli.rounds import days

            return days
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
