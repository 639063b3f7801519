"""`waggle ctl`: the commands that control a running engine under one name. Each also stands alone: `waggle pause`."""

import argparse

from waggle.cli.control.pause import add_pause_options
from waggle.cli.shared.options import add_home, text
from waggle.cli.shared.printing import add_json
from waggle.core import paths
from waggle.core.errors import EngineError

CHOICES = ("mute", "block", "welcome")
VERBS = ("status", "why", "pause", "resume", "set", "stop", "peers", *CHOICES, "anew", "keep")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)
    parser.add_argument(
        "verb", choices=VERBS, help="what to do; welcome: undo mute and block; anew, keep: decide about a changed model"
    )
    parser.add_argument(
        "what", nargs="*", type=text,
        help="mute, block, welcome: the peer's id; set: SECTION.NAME=VALUE, or no VALUE for the default",
    )  # fmt: skip
    add_pause_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Do what the verb says and print the result. Raises WaggleError."""
    require_fitting(arguments)
    arguments.command = arguments.verb
    match arguments.verb:
        case "pause" | "resume":
            from waggle.cli.control import pause

            return pause.run(arguments)
        case "stop":
            from waggle.cli.control import stop

            return stop.run(arguments)
        case "peers" | "mute" | "block" | "welcome":
            from waggle.cli.control import peers

            arguments.peer = "".join(arguments.what)
            return peers.run(arguments)
        case "set":
            from waggle.cli.preferences import set as setting

            arguments.assignments, arguments.no_restart = arguments.what, False
            return setting.run(arguments)
        case "anew" | "keep":
            from waggle.cli.models.deciding import decide

            return decide(paths.home_in(arguments.home), arguments.verb)
        case _:
            from waggle.cli.control import status

            return status.run(arguments)


def require_fitting(arguments: argparse.Namespace) -> None:
    """Raise EngineError if these arguments do not belong to the verb."""
    if arguments.what and arguments.verb not in ("set", *CHOICES):
        meant = "pause --for 1h" if arguments.verb == "pause" else arguments.verb
        raise EngineError(f"`waggle ctl {arguments.verb}` knows no {' '.join(arguments.what)}.", f"Write `waggle ctl {meant}`.")
    if arguments.verb != "pause" and (arguments.span is not None or arguments.until_away or arguments.after_round):
        raise EngineError(
            f"`waggle ctl {arguments.verb}` knows no --for, --until-away or --after-round.", "They belong to `waggle ctl pause`."
        )
    if arguments.verb in CHOICES and len(arguments.what) != 1:
        raise EngineError(f"`waggle ctl {arguments.verb}` needs a peer's id.", "`waggle ctl peers` lists them.")
    if arguments.verb == "set" and not arguments.what:
        raise EngineError("`waggle ctl set` needs a setting.", "Write `waggle ctl set SECTION.NAME=VALUE`.")
