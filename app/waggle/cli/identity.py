"""`waggle identity`: write, check or restore a backup of the identity while no engine runs. The window does it while one does."""

import argparse
import getpass
import sys
from pathlib import Path

from waggle.cli.shared.options import add_home, text
from waggle.core import paths
from waggle.core.errors import IdentityError
from waggle.core.peer_id import text_of, with_fingerprint
from waggle.engine.control import server
from waggle.network.identity import backup, keys

VERBS = ("backup", "check", "restore")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    parser.add_argument("verb", choices=VERBS, help="write a new backup; say whose one is; or be who is in it from now on")
    parser.add_argument("file", type=text, metavar="FILE", help="the backup")


def run(arguments: argparse.Namespace) -> int:
    """Do what the verb says; the passphrase is typed or piped in. Raises IdentityError, and EngineError if an engine runs."""
    home, file = paths.home_in(arguments.home), paths.expand_user(Path(arguments.file)).absolute()
    if arguments.verb == "check":
        return _say(f"This backup is of {_name_of(backup.read(file, _passphrase()))}.")
    lock = server.claim_home(home.prepare())
    try:
        if arguments.verb == "backup":
            who, words = keys.load_or_create(home.identity), _passphrase()
            if sys.stdin.isatty() and _passphrase("The same passphrase again: ") != words:
                raise IdentityError("The two passphrases differ.", "Nothing was written: try again.")
            backup.write(file, who, words)
            return _say(f"The backup of {with_fingerprint(keys.name_of(who.peer_id), text_of(who.peer_id))} is {file}.")
        opened = backup.read(file, _passphrase())
        aside = None if _is_mine(home, opened) else backup.restore_key_file(home.identity, opened.content)
        old = f" The key file of before is kept as {aside}." if aside is not None else ""
        return _say(f"You are {_name_of(opened)} from the next start on.{old}")
    finally:
        lock.release()


def _is_mine(home: paths.Home, opened: backup.OpenedBackup) -> bool:
    try:
        return keys.identity_of(home.identity, home.identity.read_bytes()).peer_id == opened.peer_id
    except (OSError, IdentityError):  # gone or damaged, which is why it is restored
        return False


def _name_of(opened: backup.OpenedBackup) -> str:
    return with_fingerprint(keys.name_of(opened.peer_id), text_of(opened.peer_id))


def _passphrase(prompt: str = "Passphrase of the backup (it is not shown): ") -> str:
    """The passphrase from stdin; a terminal shows a prompt and does not echo it. Empty if there is none."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    try:
        return getpass.getpass(prompt)
    except EOFError:  # Ctrl+D does not end the line
        sys.stderr.write("\n")
        return ""


def _say(words: str) -> int:
    sys.stdout.write(words + "\n")
    return 0
