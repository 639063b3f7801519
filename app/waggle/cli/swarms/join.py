"""`waggle join`: look at a swarm, ask the person, then join it. Nothing joins by itself."""

import argparse
import sys
from pathlib import Path

from waggle.cli.preferences.current import current_settings
from waggle.cli.shared.confirming import REFUSED, add_yes, is_confirmed
from waggle.cli.shared.engine import engine_runs
from waggle.cli.shared.options import add_home, text
from waggle.cli.shared.printing import add_json, say, say_json
from waggle.cli.swarms import entering, picture
from waggle.cli.swarms.described import before_joining
from waggle.cli.swarms.obeying import Obey, swarm_commands
from waggle.core import paths
from waggle.core.errors import EngineError, SwarmError
from waggle.core.system.hide_arguments import hide
from waggle.core.system.os_faults import fault_of
from waggle.core.text import pasted_link
from waggle.gui.state.inputs.invite_link import is_picture
from waggle.protocol import commands
from waggle.protocol.events_swarms import InviteRead, KnownSwarms, SwarmDetails
from waggle.tasks.shipped_swarms import shipped_swarm_called, shipped_swarms

SHIPPED = tuple(f'"{charter.name}"' for charter in shipped_swarms())
MOST_OF_A_FILE = 16_384  # bytes: a link has at most a quarter of that
LONGEST_TEXT = 8000  # characters that are read as an invite


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_yes(parser)
    add_json(parser)
    add_member_name(parser)
    parser.add_argument(
        "swarm", type=text, metavar="SWARM",
        help="an invite: its link, a file that holds it, or a picture of its QR code; the hash of a swarm that you know; or a "
        f"swarm that comes with Waggle: {' or '.join(SHIPPED)}",
    )  # fmt: skip


def add_member_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--as", dest="member_name", default=None, type=text, metavar="NAME",
        help="the name that the members of a private swarm see; without it, they see the name of your key",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Join; with an engine, wait until it has. Raises WaggleError."""
    home = paths.home_in(arguments.home)
    hide(arguments.swarm)  # it may be an invite with a key, and joining takes minutes
    runs, solo = engine_runs(home), current_settings(home).swarm.solo
    with swarm_commands(home) as obey:
        (known,) = (event for event in obey(commands.ListSwarms(id=commands.new_id())) if isinstance(event, KnownSwarms))
        if known.fixed:
            raise EngineError("Another swarm cannot be chosen now.", known.fixed)
        swarm, read = _swarm_of(arguments.swarm, known, obey)
        present = next((each for each in known.swarms if each.active), None)
        leads_on = read is not None and read.leads_to_others
        if swarm.active and not solo and not leads_on and arguments.member_name in (None, swarm.member_name):
            return _done(swarm, "The engine is in this swarm already." if runs else "It is chosen already.", arguments)
        sys.stderr.write(f"{before_joining(swarm, present, read, solo=solo, name=arguments.member_name)}\n")
        if not is_confirmed(f"Join {swarm.name}?", yes=arguments.yes):
            return REFUSED
        since = entering.choose(home, obey, swarm.charter, arguments.member_name)
    entering.wait(home, swarm.charter, since)
    return _done(swarm, _joined(swarm, runs=runs), arguments)


def _joined(swarm: SwarmDetails, *, runs: bool) -> str:
    return f"The engine has joined {swarm.name}." if runs else f"The next engine joins {swarm.name}. `waggle engine` starts it."


def _swarm_of(words: str, known: KnownSwarms, obey: Obey) -> tuple[SwarmDetails, InviteRead | None]:
    """The swarm of an invite, a hash or a name. Raises SwarmError."""
    shipped = shipped_swarm_called(words)
    charter = words if shipped is None else shipped.digest.hex()
    if len(charter) == 64 and set(charter) <= set("0123456789abcdef"):
        swarm = next((each for each in known.swarms if each.charter == charter), None)
        if swarm is None:
            ended = next((each for each in known.ended if each.charter == charter), None)
            why = ended.why if ended is not None else "Open its invite first."
            raise SwarmError("This swarm is not known here.", why)
        return swarm, None
    answers = obey(commands.ReadInvite(id=commands.new_id(), link=_link_of(words)[:LONGEST_TEXT]))
    (read,) = (event for event in answers if isinstance(event, InviteRead))
    return read.swarm, read


def _link_of(words: str) -> str:
    """The words, or the text of a file that they name. Raises SwarmError."""
    if pasted_link.has_link(words):
        return words
    path = paths.expand_user(Path(words.removeprefix("file://")))
    if is_picture(path) and path.is_file():
        return picture.invite_in(path)
    try:
        with path.open("rb") as file:
            content = file.read(MOST_OF_A_FILE).decode("utf-8-sig", "replace")
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = fault_of(error).reason if isinstance(error, OSError) else "no such file"
        names = " or ".join(SHIPPED)
        raise SwarmError(
            f"{words[:80]!r} is no invite, and no file with one: {reason}.", f"Write a link, a file, a hash, or {names}."
        ) from error
    if not pasted_link.has_link(content):
        raise SwarmError("There is no invite in that file.", "Ask for its link: it begins with waggle://join.")
    return content


def _done(swarm: SwarmDetails, words: str, arguments: argparse.Namespace) -> int:
    return say_json({"swarm": swarm.name, "charter": swarm.charter}) if arguments.json else say(words)
