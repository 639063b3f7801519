"""`waggle ctl`: ask a running engine for its state or its peers; to pause, resume or stop; to mute or block a peer."""

import argparse
import sys
import time
import uuid

from waggle import paths
from waggle.engine import control
from waggle.errors import EngineError
from waggle.protocol import commands, events
from waggle.protocol.about_peer import about
from waggle.protocol.sentence import sentence
from waggle.protocol.state import AnyEvent, Snapshot, State

CHOICES: dict[str, events.Choice] = {"mute": "muted", "block": "blocked", "welcome": ""}


def run(arguments: argparse.Namespace) -> int:
    """Do one verb and say what came of it; raises EngineError."""
    home = paths.Home(arguments.home.expanduser()) if arguments.home else paths.default_home()
    ask(home, _command(arguments))
    if arguments.verb == "stop":
        return _say("Stopping. Everything is kept.")
    if arguments.verb in ("peers", *CHOICES):
        return _say(list_peers(status(home), time.time()))
    return _say(describe(status(home)))


def ask(home: paths.Home, command: commands.AnyCommand) -> list[AnyEvent]:
    """The answers to one command; raises EngineError when it is refused."""
    answers = control.ask(home, command)
    if isinstance(answers[-1], events.CommandRefused):
        raise EngineError(answers[-1].title, answers[-1].advice)
    return answers


def status(home: paths.Home) -> State:
    """The engine's State now."""
    answers = ask(home, commands.Status(id=_new_id()))
    return next(event.state for event in answers if isinstance(event, Snapshot))


def describe(state: State) -> str:
    """The same sentence as everywhere, and the figures behind it."""
    said = sentence(state)
    lines = [f"{said.word}: {said.says}", said.detail]
    if state.ready:
        lines.append(f"{state.ready.name}, {state.ready.model} on {state.ready.device} ({state.ready.device_reason}).")
    if state.rounds:
        last = state.rounds[-1]
        lines.append(f"Last round: reward {last.reward:.3f}, {last.solved:.1%} right, {last.external} groups from peers.")
    if state.held_out:
        score = state.held_out[-1]
        lines.append(f"Held-out score: {score.right} of {score.total} after round {score.round}.")
    return "\n".join(lines)


def list_peers(state: State, now: float) -> str:
    """A line for each peer that was met, those connected first."""
    peers = sorted(state.peers.values(), key=lambda peer: (peer.connection == "gone", -peer.received, peer.name))
    return "\n".join(f"{peer.name}  {peer.id}  {about(peer, now)}" for peer in peers) or "No peer has been met yet."


def _command(arguments: argparse.Namespace) -> commands.AnyCommand:
    match arguments.verb:
        case "pause":
            until = time.time() + 60 * arguments.minutes if arguments.minutes else None
            return commands.Pause(id=_new_id(), until=until, after_round=arguments.after_round)
        case "mute" | "block" | "welcome":
            if not arguments.peer:
                raise EngineError(f"`waggle ctl {arguments.verb}` needs a peer's id.", "`waggle ctl peers` lists them.")
            return commands.ChoosePeer(id=_new_id(), peer=arguments.peer, choice=CHOICES[arguments.verb])
        case "resume":
            return commands.Resume(id=_new_id())
        case "stop":
            return commands.Stop(id=_new_id())
        case _:
            return commands.Status(id=_new_id())


def _new_id() -> str:
    return uuid.uuid4().hex


def _say(text: str) -> int:
    sys.stdout.write(text + "\n")
    return 0
