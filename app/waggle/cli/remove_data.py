"""`waggle goodbye`: lists what Waggle stores on this computer, stops the engine, and removes what a person chooses."""

import argparse
import sys
from collections.abc import Collection, Iterable
from contextlib import suppress

import msgspec

from waggle.cli.shared.options import add_home
from waggle.core import hub_token, login_start, paths, stored_data
from waggle.core.errors import EngineError, TokenError
from waggle.core.message import Message, english
from waggle.core.stored_data import KINDS, DataKind, Removal, StoredFiles
from waggle.engine.control import server
from waggle.protocol.commands import Stop

STOP_SECONDS = 30.0  # for the engine to finish its step
ABOUT: dict[DataKind, str] = {
    "identity": "who you are in every swarm",
    "settings": "settings, and where the window stood",
    "checkpoints": "what your models learned: checkpoints, their journal, the album",
    "history": "the figures of every round",
    "record": "the record of events",
    "swarms": "swarms, their keys, and what is known of peers",
    "log": "logs",
    "models": "models that were downloaded, for every home of yours",
    "cuda": "what computes on an NVIDIA graphics card",
    "cache": "what experiments keep to be faster next time",
}
AFTER = "The program goes as it came. A Hugging Face token, if you stored one, goes with `waggle token --forget`.\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    parser.add_argument(
        "--remove", type=parse_kinds, metavar="KINDS",
        help="kinds of data from the list, separated by commas; all: everything, but with --home not what all homes share",
    )  # fmt: skip
    parser.add_argument("--keep", type=parse_kinds, metavar="KINDS", default=frozenset(), help="with --remove: not these")
    parser.add_argument("--json", action="store_true", help="with --remove: print what was removed as JSON")


def run(arguments: argparse.Namespace) -> int:
    """List the data, or remove it and report. Returns 1 if a file could not be removed. Raises EngineError and OSError."""
    home = paths.home_in(arguments.home)
    with suppress(FileNotFoundError):  # the home does not exist
        next(home.root.iterdir(), None)
    if arguments.remove is None:
        sys.stdout.write(listing(stored_data.stored_files(home, paths.cache()), home))
        return 0
    kinds = kinds_to_remove(arguments.remove, home) - arguments.keep
    if sys.stdin.isatty() and not arguments.json and not _sure(home, kinds):
        return 1
    for file in login_start.remove(home) if "all" in arguments.remove or "settings" in kinds else ():
        if not arguments.json:
            sys.stdout.write(f"removed {file}, which started Waggle at each login\n")
    _stop(home)
    done = stored_data.remove(home, paths.cache(), kinds)
    forgotten = _forget_token() if "all" in arguments.remove and stored_data.is_usual(home) else False
    sys.stdout.write(
        msgspec.json.encode(done, enc_hook=english).decode() + "\n" if arguments.json else report(done, forgotten=forgotten)
    )
    return 1 if any(removed.spared for removed in done) else 0


def parse_kinds(words: str) -> frozenset[str]:
    """The kinds in a list with commas, or `all`. Raises argparse.ArgumentTypeError."""
    named = frozenset(word.strip() for word in words.split(","))
    if strange := named - {"all", *KINDS}:
        raise argparse.ArgumentTypeError(
            Message("there is no %1; there are all, %2", ", ".join(sorted(strange)), ", ".join(KINDS))
        )
    return named


def kinds_to_remove(named: Collection[str], home: paths.Home) -> frozenset[DataKind]:
    """The named kinds. `all` leaves out only what all homes share, for another home than the usual one."""
    stays = () if stored_data.is_usual(home) else stored_data.SHARED
    return frozenset(kind for kind in KINDS if kind in named or ("all" in named and kind not in stays))


def _forget_token() -> bool:
    """Remove the token of the model hub from the keychain; False if there is none, or no keychain."""
    with suppress(TokenError):  # it is locked, or away: `AFTER` says what to do
        if hub_token.stored_token() is not None:
            hub_token.forget()
            return True
    return False


def _sure(home: paths.Home, kinds: Collection[DataKind]) -> bool:
    """Show the person at the terminal what will be removed, and ask."""
    going = tuple(stored for stored in stored_data.stored_files(home, paths.cache()) if stored.kind in kinds)
    sys.stdout.write("\n".join([f"From {home.root} and {paths.cache()}:", *_rows(going), "Remove these? [y/N] "]))
    sys.stdout.flush()
    return sys.stdin.readline().removeprefix("\ufeff").strip().lower() in ("y", "yes")


def listing(stored: Iterable[StoredFiles], home: paths.Home) -> str:
    """One line for each kind, and how to remove it."""
    rows = _rows(stored)
    head = f"In {home.root} and {paths.cache()}:"
    if not rows:
        return f"{head} nothing of Waggle.\n"
    how = "Remove with `waggle goodbye --remove all`, name kinds with commas, or keep some: `--remove all --keep identity`."
    return "\n".join([head, *rows, "", how, ""])


def report(done: Iterable[Removal], *, forgotten: bool = False) -> str:
    """What was removed, what could not be removed, and what to do by hand."""
    lines = []
    for removed in done:
        lines.append(f"removed {removed.kind}: {removed.files} {_files(removed.files).rstrip()}, {_size(removed.size)}")
        lines += [f"  could not be removed: {each.path}: {each.reason}" for each in removed.spared]
    if forgotten:
        lines.append("removed the Hugging Face token from the keychain")
    return "\n".join([*(lines or ["There was nothing to remove."]), AFTER])


def _rows(stored: Iterable[StoredFiles]) -> list[str]:
    return [
        f"{kind.kind:<12}{_size(kind.size):>10}  {len(kind.files):>6} {_files(len(kind.files))}  {ABOUT[kind.kind]}"
        for kind in stored
    ]


def _files(count: int) -> str:
    return "file " if count == 1 else "files"


def _size(number: float) -> str:
    return f"{number / 1e9:.1f} GB" if number >= 1e9 else f"{number / 1e6:.1f} MB" if number >= 1e5 else f"{number / 1e3:.1f} kB"


def _stop(home: paths.Home) -> None:
    """Ask the engine of this home to exit, and wait for it. Raises EngineError if it does not."""
    if not (stored_data.is_home(home) and home.control.is_dir()):
        return  # no engine was ever here
    with suppress(EngineError):  # none runs, or it is just starting: `claim` waits for it
        server.send_command(home, Stop(id="goodbye"), STOP_SECONDS)
    claimed = server.claim_home(home, STOP_SECONDS)
    server.remove_socket(home)
    claimed.release()
