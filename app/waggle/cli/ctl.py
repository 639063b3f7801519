"""`waggle ctl`: control a running engine: show its state and peers, pause, resume or stop it, change settings, block peers."""

import argparse
import re
import sys
import time
from typing import get_args

from waggle.cli.shared.options import add_home, text
from waggle.core import paths, settings
from waggle.core.confidence_interval import interval_of
from waggle.core.errors import EngineError
from waggle.core.peer_id import with_fingerprint
from waggle.engine.control import server
from waggle.protocol import commands, events
from waggle.protocol.activity_text import weather
from waggle.protocol.commands import TrainingChoice
from waggle.protocol.lesson_diagnosis import diagnosis, helpful_text
from waggle.protocol.peer_text import standing_text
from waggle.protocol.state import AnyEvent, Snapshot, State
from waggle.protocol.status_text import sentence
from waggle.protocol.swarm_suggestion import command_line, suggestion

CHOICES: dict[str, events.Choice] = {"mute": "muted", "block": "blocked", "welcome": ""}
MARKS = {True: "+", False: "-", None: "?"}
SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|d)")
LONGEST = 366 * 86_400.0
SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}

VERBS = ("status", "pause", "resume", "set", "stop", "peers", "mute", "block", "welcome", "anew", "keep")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    parser.add_argument(
        "verb", choices=VERBS, help="what to do; welcome: undo mute and block; anew, keep: decide about a changed model"
    )
    parser.add_argument(
        "what", nargs="*", type=text,
        help="mute, block, welcome: the peer's id; set: SECTION.NAME=VALUE, or no VALUE for the default",
    )  # fmt: skip
    parser.add_argument("--for", dest="span", metavar="SPAN", help="with pause: resume by itself after 90m, 1h or 2d")
    parser.add_argument("--until-away", action="store_true", help="with pause: resume once nobody uses this computer")
    parser.add_argument("--after-round", action="store_true", help="with pause: finish this round first")


def run(arguments: argparse.Namespace) -> int:
    """Do what the verb says and print the result. Raises EngineError and SettingsError."""
    home = paths.home_in(arguments.home)
    ask(home, command_of(arguments))
    if arguments.verb == "stop":
        return _say("Stopping. Everything is kept.")
    if arguments.verb in get_args(TrainingChoice):
        return _say("The engine is restarting. `waggle ctl status` shows its progress.")
    if arguments.verb in ("peers", *CHOICES):
        return _say(list_peers(status(home), time.time()))
    return _say(describe(status(home), time.time()))


def ask(home: paths.Home, command: commands.AnyCommand, seconds: float = server.ANSWER_SECONDS) -> list[AnyEvent]:
    """The engine's answers to a command. Raises EngineError if it is refused, or does not answer in time."""
    answers = server.send_command(home, command, seconds)
    if isinstance(answers[-1], events.CommandRefused):
        raise EngineError(answers[-1].title, answers[-1].advice)
    return answers


def status(home: paths.Home) -> State:
    """The engine's current State."""
    answers = ask(home, commands.Status(id=commands.new_id()))
    return next(event.state for event in answers if isinstance(event, Snapshot))


def describe(state: State, now: float) -> str:
    """The State in words: the same sentence as in the window, and the figures behind it."""
    summary = sentence(state)
    lines = [
        f"{summary.word}: {summary.says}",
        summary.detail,
        weather(state, now),
        *(f"  {MARKS[tick.passes]} {tick.says}" for tick in summary.why),
    ]
    if (why := diagnosis(state)) is not None:
        lines += [why.says, helpful_text(why)]
    if (better := suggestion(state)) is not None:
        lines.append(command_line(better))
    if state.changed:
        lines.append("`waggle ctl anew` begins anew, `waggle ctl keep` keeps the old one.")
    if state.undecided:
        lines.append("`waggle swarm join SWARM` chooses a swarm, `waggle ctl set swarm.solo=true` trains alone meanwhile.")
        lines += [f"  {name}" for name in state.undecided.known]
    if state.ready:
        name = with_fingerprint(state.ready.name, state.ready.node)
        lines.append(f"{name}, {state.ready.model} on {state.ready.device} ({state.ready.device_reason}).")
    if state.rounds:
        last = state.rounds[-1]
        lines.append(f"Last round: reward {last.reward:.3f}, {last.solved:.1%} right, {last.external} groups from peers.")
    if state.held_out:
        score = state.held_out[-1]
        low, high = interval_of(score.right, score.total)
        first = "a first " if score.early else ""
        interval = f"95% interval: {low:.0%} to {high:.0%}"
        lines.append(f"Held-out score: {score.right} of {first}{score.total} after round {score.round}, {interval}.")
    return "\n".join(lines)


def list_peers(state: State, now: float) -> str:
    """One line for each known peer, connected ones first."""
    peers = sorted(state.peers.values(), key=lambda peer: (peer.connection == "gone", -peer.received, peer.name))
    return "\n".join(f"{peer.name}  {peer.id}  {standing_text(peer, now)}" for peer in peers) or "No peer has been met yet."


def command_of(arguments: argparse.Namespace) -> commands.AnyCommand:
    """The command of a verb. Raises EngineError and SettingsError for wrong arguments."""
    if arguments.what and arguments.verb not in ("set", *CHOICES):
        meant = "pause --for 1h" if arguments.verb == "pause" else arguments.verb
        raise EngineError(f"`waggle ctl {arguments.verb}` knows no {' '.join(arguments.what)}.", f"Write `waggle ctl {meant}`.")
    if arguments.verb != "pause" and (arguments.span is not None or arguments.until_away or arguments.after_round):
        raise EngineError(
            f"`waggle ctl {arguments.verb}` knows no --for, --until-away or --after-round.", "They belong to `waggle ctl pause`."
        )
    match arguments.verb:
        case "pause":
            if arguments.span is not None and arguments.until_away:
                raise EngineError("A pause ends after a while or once you are away.", "Write --for or --until-away, not both.")
            seconds = None if arguments.span is None else seconds_of(arguments.span)
            return commands.Pause(
                id=commands.new_id(), seconds=seconds, after_round=arguments.after_round, until_away=arguments.until_away
            )
        case "mute" | "block" | "welcome":
            if len(arguments.what) != 1:
                raise EngineError(f"`waggle ctl {arguments.verb}` needs a peer's id.", "`waggle ctl peers` lists them.")
            return commands.ChoosePeer(id=commands.new_id(), peer=arguments.what[0], choice=CHOICES[arguments.verb])
        case "set":
            return commands.ChangeSettings(
                id=commands.new_id(), values=dict(settings.assignment(assignment) for assignment in arguments.what)
            )
        case "resume":
            return commands.Resume(id=commands.new_id())
        case "anew" | "keep":
            return commands.DecideTraining(id=commands.new_id(), choice=arguments.verb)
        case "stop":
            return commands.Stop(id=commands.new_id())
        case _:
            return commands.Status(id=commands.new_id())


def seconds_of(span: str) -> float:
    """The seconds of a time span such as 90m, 1h or 2d. Raises EngineError."""
    match = SPAN.fullmatch(span.strip())
    if not match:
        raise EngineError(f"{span or 'Nothing'} is no span of time.", "Write it as 90m, 1h or 2d.")
    seconds = float(match.group(1)) * SECONDS[match.group(2)]
    if not seconds:
        raise EngineError("A pause of no time is none.", "Write it as 90m, 1h or 2d.")
    if seconds > LONGEST:
        raise EngineError(f"{span} is too long.", "Pause without a span: it ends when you resume.")
    return seconds


def _say(text: str) -> int:
    sys.stdout.write(text + "\n")
    return 0
