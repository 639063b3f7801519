"""`waggle pause` and `waggle resume`. Where no engine runs, the next one starts paused, or does not."""

import argparse
import re
import time

from waggle.cli.control.status import describe, facts
from waggle.cli.shared.engine import ask, engine_runs, status
from waggle.cli.shared.options import add_home
from waggle.cli.shared.printing import add_json, say, say_json
from waggle.core import paths
from waggle.core.errors import EngineError
from waggle.engine.control import server
from waggle.engine.storage.pause_request import PauseRequest
from waggle.protocol import commands
from waggle.protocol.schedule import Wishes

SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|d)")
LONGEST = 366 * 86_400.0
SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)
    if parser.get_default("command") == "pause":
        add_pause_options(parser)


def add_pause_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--for", dest="span", metavar="SPAN", help="with pause: resume by itself after 90m, 1h or 2d")
    parser.add_argument("--until-away", action="store_true", help="with pause: resume once nobody uses this computer")
    parser.add_argument("--after-round", action="store_true", help="with pause: finish this round first")


def run(arguments: argparse.Namespace) -> int:
    """Pause or resume, and print the status. Raises EngineError."""
    home, command = paths.home_in(arguments.home), command_of(arguments)
    if not engine_runs(home):
        _request(home, command)
        starts = "starts paused" if isinstance(command, commands.Pause) else "does not start paused"
        return say_json({"paused": isinstance(command, commands.Pause)}) if arguments.json else say(
            f"No engine is running. The next one {starts}."
        )  # fmt: skip
    ask(home, command)
    state = status(home)
    return say_json(facts(state)) if arguments.json else say(describe(state, time.time()))


def command_of(arguments: argparse.Namespace) -> commands.Pause | commands.Resume:
    """The command of these arguments. Raises EngineError."""
    if arguments.command == "resume":
        return commands.Resume(id=commands.new_id())
    if arguments.span is not None and arguments.until_away:
        raise EngineError("A pause ends after a while or once you are away.", "Write --for or --until-away, not both.")
    seconds = None if arguments.span is None else seconds_of(arguments.span)
    return commands.Pause(
        id=commands.new_id(), seconds=seconds, after_round=arguments.after_round, until_away=arguments.until_away
    )


def seconds_of(span: str) -> float:
    """The seconds of a time span such as 90m, 1h or 2d. Raises EngineError."""
    match = SPAN.fullmatch(span.strip())
    if not match:
        raise EngineError(f"{span or 'Nothing'} is no span of time.", "Write it as 90m, 1h or 2d.")
    seconds = float(match.group(1)) * SECONDS[match.group(2)]
    if not seconds:
        raise EngineError("A pause must be longer than zero.", "Write it as 90m, 1h or 2d.")
    if seconds > LONGEST:
        raise EngineError(f"{span} is too long.", "Pause without a span: it ends when you resume.")
    return seconds


def _request(home: paths.Home, command: commands.Pause | commands.Resume) -> None:
    """Store what the next engine of this home is asked for. Raises EngineError."""
    lock = server.claim_home(home.prepare())
    try:
        now, wishes = time.time(), Wishes()
        if isinstance(command, commands.Pause):
            until = None if command.seconds is None else now + command.seconds
            wishes = Wishes(paused=True, until=until, until_away=command.until_away, asked_at=now)
        PauseRequest(home.root / "asked.json").save(wishes)
    finally:
        lock.release()
