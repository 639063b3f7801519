"""`waggle invite`: print an invite to the swarm of this computer, or the one in a picture."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from waggle.cli.shared.engine import engine_runs
from waggle.cli.shared.options import add_home, text
from waggle.cli.shared.printing import add_json, say, say_json
from waggle.cli.swarms import picture
from waggle.cli.swarms.obeying import swarm_commands
from waggle.core import paths
from waggle.core.errors import EngineError
from waggle.core.qr_code import modules
from waggle.core.system.os_faults import fault_of
from waggle.protocol import commands
from waggle.protocol.events_swarms import InviteWritten

QUIET = 4  # modules of white margin, as the QR standard requires
BLACK_ON_WHITE, PLAIN = "\x1b[30;107m", "\x1b[0m"
LATER = "Try again in a moment."  # the advice of a service that waits for the node


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)
    parser.add_argument("--file", type=text, metavar="FILE", help="write the link to a file, too")
    parser.add_argument("--qr", action="store_true", help="draw the link as a QR code, too")
    parser.add_argument(
        "--in", dest="picture", type=text, metavar="PICTURE",
        help="print the invite whose QR code is in a picture, such as a photo or a screenshot, and nothing else",
    )  # fmt: skip
    parser.add_argument("--bounded", action="store_true", help=argparse.SUPPRESS)  # this is the process that reads the picture


def run(arguments: argparse.Namespace) -> int:
    """Print the link; on stderr, from where it works. Without an engine, it names other members. Raises WaggleError."""
    if arguments.picture is not None:
        path = paths.expand_user(Path(arguments.picture))
        return picture.print_invite_in(path) if arguments.bounded else say(picture.invite_in(path))
    home = paths.home_in(arguments.home)
    runs = engine_runs(home)
    try:
        with swarm_commands(home) as obey:
            answers = obey(commands.WriteInvite(id=commands.new_id()))
    except EngineError as error:
        if runs:
            raise
        advice = "Start one with `waggle engine`, then ask again." if error.advice == LATER else error.advice
        raise EngineError(f"No engine is running. {error.title}", advice) from error
    (invite,) = (event for event in answers if isinstance(event, InviteWritten))
    if arguments.file is not None:
        _write(paths.expand_user(Path(arguments.file)), invite.link)
    if arguments.json:
        return say_json(
            {
                "link": invite.link, "charter": invite.charter, "reach": invite.reach,
                "class_page": invite.class_page, "join_page": invite.join_page,
            }
        )  # fmt: skip
    sys.stderr.write(f"{invite.reach}\n")
    if invite.class_page:
        sys.stderr.write(f"For the projector: {invite.class_page}\n")
    if invite.join_page:
        sys.stderr.write(f"Others on your network join at {invite.join_page}\n")
    if arguments.qr:
        say(_drawn(modules(invite.join_page or invite.link)))
    return say(invite.link)


def _write(path: Path, link: str) -> None:
    """Write the link for this user only: it may hold the key of a private swarm. Raises EngineError."""
    try:
        with open(path, "w", encoding="utf-8", opener=paths.owner_only) as file:
            file.write(f"{link}\n")
    except OSError as error:
        raise EngineError(f"{path} cannot be written: {fault_of(error).reason}.", fault_of(error).advice) from error


def _drawn(rows: Sequence[Sequence[bool]]) -> str:
    """A QR code in black on white, two rows of modules in one line; a sentence for a link that is too long for one."""
    if not rows:
        return "This link is too long for a QR code."
    margin = [False] * (len(rows) + 2 * QUIET)
    padded = [margin] * QUIET + [[False] * QUIET + list(row) + [False] * QUIET for row in rows] + [margin] * (QUIET + 1)
    signs = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}
    pairs = zip(padded[::2], padded[1::2], strict=False)
    return "\n".join(f"{BLACK_ON_WHITE}{''.join(map(signs.__getitem__, zip(*pair, strict=True)))}{PLAIN}" for pair in pairs)
