"""`waggle identity`: say who you are; write, check or restore a backup of that; or become somebody new."""

import argparse
import getpass
import sys
from pathlib import Path

from waggle.cli.shared.confirming import REFUSED, add_yes, is_confirmed
from waggle.cli.shared.engine import ask, engine_runs, status
from waggle.cli.shared.options import add_home, text
from waggle.cli.shared.printing import add_json, say, say_json
from waggle.cli.shared.waiting import wait_for_start
from waggle.core import paths
from waggle.core.errors import IdentityError
from waggle.core.peer_id import text_of, with_fingerprint
from waggle.core.system.os_faults import fault_of
from waggle.engine.control import server
from waggle.engine.storage import noise_salt
from waggle.network.identity import backup, keys
from waggle.protocol import commands
from waggle.protocol.events_identity import BackupRead

VERBS = ("show", "backup", "check", "restore", "renew")
RENEW = "Become somebody new? Others then know you by another name; the old key stays beside the new one."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_yes(parser)
    add_json(parser)
    parser.add_argument(
        "verb", choices=VERBS, nargs="?", default="show",
        help="say who you are; write a new backup; say whose one is; be who is in it from now on; or become somebody new",
    )  # fmt: skip
    parser.add_argument("file", type=text, nargs="?", metavar="FILE", help="the backup")


def run(arguments: argparse.Namespace) -> int:
    """Do what the verb says; the passphrase is typed or piped in. Raises IdentityError and EngineError."""
    home = paths.home_in(arguments.home)
    if bool(arguments.file) != (arguments.verb in ("backup", "check", "restore")):
        needs = "needs no file" if arguments.file else "needs a file"
        raise IdentityError(f"`waggle identity {arguments.verb}` {needs}.", "`waggle identity --help` explains it.")
    file = paths.expand_user(Path(arguments.file)).absolute() if arguments.file else Path()
    match arguments.verb:
        case "show":
            peer_id = keys.identity_of(home.identity, _key_file(home)).peer_id
            return _print_owner(peer_id, f"You are {_name_of(peer_id)}.", as_json=arguments.json)
        case "check":
            opened = backup.read(file, _passphrase())
            return _print_owner(opened.peer_id, f"This backup is of {_name_of(opened.peer_id)}.", as_json=arguments.json)
        case "backup":
            return _back_up(home, file)
        case "restore":
            return _restore(home, file)
        case _:
            return _renew(home) if is_confirmed(RENEW, yes=arguments.yes) else REFUSED


def _back_up(home: paths.Home, file: Path) -> int:
    if not engine_runs(home):
        lock = server.claim_home(home.prepare())
        try:
            who = keys.load_or_create(home.identity)
            backup.write(file, who, _new_passphrase())
            return say(f"The backup of {_name_of(who.peer_id)} is {file}.")
        finally:
            lock.release()
    ask(home, commands.BackUpIdentity(id=commands.new_id(), path=str(file), passphrase=_new_passphrase()))
    return say(f"The backup is {file}.")


def _restore(home: paths.Home, file: Path) -> int:
    if engine_runs(home):
        since = status(home).at
        answers = ask(home, commands.RestoreIdentity(id=commands.new_id(), path=str(file), passphrase=_passphrase()))
        read = next(answer for answer in answers if isinstance(answer, BackupRead))
        if not read.mine:
            wait_for_start(home, since)
        return say(f"You are {with_fingerprint(read.name, read.node)}.")
    lock = server.claim_home(home.prepare())
    try:
        opened = backup.read(file, _passphrase())
        aside = None if _is_mine(home, opened) else backup.restore_key_file(home.identity, opened.content)
        old = f" The key file of before is kept as {aside}." if aside is not None else ""
        return say(f"You are {_name_of(opened.peer_id)} from the next start on.{old}")
    finally:
        lock.release()


def _renew(home: paths.Home) -> int:
    if engine_runs(home):
        since = status(home).at
        ask(home, commands.RenewIdentity(id=commands.new_id()))
        wait_for_start(home, since)
        ready = status(home).ready
        return say(f"You are {with_fingerprint(ready.name, ready.node)}." if ready is not None else "You are somebody new.")
    lock = server.claim_home(home.prepare())
    try:
        aside = backup.restore_key_file(home.identity, None)
        noise_salt.forget(home)
        old = f" The key file of before is kept as {aside}." if aside is not None else ""
        return say(f"You are {_name_of(keys.load_or_create(home.identity).peer_id)} from the next start on.{old}")
    finally:
        lock.release()


def _key_file(home: paths.Home) -> bytes:
    """Raises IdentityError."""
    try:
        return home.identity.read_bytes()
    except OSError as error:
        raise IdentityError(
            f"There is no identity here: {fault_of(error).reason}.", "The engine creates one at its first start: `waggle engine`."
        ) from error


def _is_mine(home: paths.Home, opened: backup.OpenedBackup) -> bool:
    try:
        return keys.identity_of(home.identity, home.identity.read_bytes()).peer_id == opened.peer_id
    except (OSError, IdentityError):  # gone or damaged, which is why it is restored
        return False


def _name_of(peer_id: bytes) -> str:
    return with_fingerprint(keys.name_of(peer_id), text_of(peer_id))


def _print_owner(peer_id: bytes, words: str, *, as_json: bool) -> int:
    return say_json({"name": keys.name_of(peer_id), "node": text_of(peer_id)}) if as_json else say(words)


def _new_passphrase() -> str:
    """A passphrase that a terminal asks for twice. Raises IdentityError if the two differ."""
    words = _passphrase()
    if sys.stdin.isatty() and _passphrase("The same passphrase again: ") != words:
        raise IdentityError("The two passphrases differ.", "Nothing was written: try again.")
    return words


def _passphrase(prompt: str = "Passphrase of the backup (it is not shown): ") -> str:
    """The passphrase from stdin; a terminal shows a prompt and does not echo it. Empty if there is none."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().removeprefix("\ufeff").rstrip("\r\n")  # PowerShell may pipe a byte order mark
    try:
        return getpass.getpass(prompt)
    except EOFError:  # Ctrl+D does not end the line
        sys.stderr.write("\n")
        return ""
