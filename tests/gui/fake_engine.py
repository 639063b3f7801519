"""A fake engine that speaks the protocol: `python fake_engine.py KIND`. KIND says what goes wrong, or is `well`."""

import itertools
import sys
import time

import msgspec

from gui.recorded import ready
from waggle.core.settings import Settings
from waggle.protocol import events, json_lines
from waggle.protocol.commands import (
    BackUpIdentity,
    ChoosePeer,
    CreateSwarm,
    ListSwarms,
    Pause,
    QueryHistory,
    ReadInvite,
    Resume,
    SendMessage,
    Stop,
)
from waggle.protocol.events_chat import Reply, Turn, TurnProgress
from waggle.protocol.events_swarms import InviteRead, KnownSwarms, SpecialtyOffer, SwarmDetails
from waggle.protocol.state import Snapshot, State

SEQ = itertools.count(1)
HERE = SwarmDetails(charter="ab" * 32, name="Maths swarm", specialties=(), shipped=True, known=True, active=True)
THERE = SwarmDetails(charter="cd" * 32, name="Two laptops", specialties=(), known=True)
OFFER = SpecialtyOffer(dataset="gcd", title="Divisors", topic="arithmetic", samples={"easy": "gcd of 4 and 6?"})


def tell(event: events.Event) -> None:
    numbered = msgspec.structs.replace(event, seq=next(SEQ), at=time.time())  # type: ignore[type-var]
    sys.stdout.buffer.write(json_lines.line(numbered))  # type: ignore[arg-type]
    sys.stdout.buffer.flush()


def peer(identity: str, choice: events.Choice = "") -> events.PeerChanged:
    return events.PeerChanged(peer=events.PeerInfo(id=identity, name="Brisk Otter", choice=choice, seen_at=time.time()))


def answer(line: bytes, kind: str) -> bool:
    """Carry out one command; False ends the engine."""
    command = json_lines.command(line)
    match command:
        case Pause(after_round=True):
            tell(events.CommandRefused(id=command.id, title="This round is the last.", advice="Pause now instead."))
        case Pause():
            tell(events.PhaseChanged(phase="paused", round=3, until=command.until))
            tell(events.CommandDone(id=command.id))
        case Resume():
            tell(events.PhaseChanged(phase="contributing", round=3))
            tell(events.CommandDone(id=command.id))
        case QueryHistory():
            tell(events.TrainingHistory(rounds=(), held_out=()))
            tell(events.CommandDone(id=command.id))
        case ChoosePeer(peer="12D3KooWUnknown"):
            tell(events.CommandRefused(id=command.id, title=f"{command.peer} is no peer's id.", advice="Copy it whole."))
        case ChoosePeer():
            tell(peer(command.peer, command.choice))
            tell(events.CommandDone(id=command.id))
        case ReadInvite():
            tell(InviteRead(swarm=THERE, answered=True))
            tell(events.CommandDone(id=command.id))
        case SendMessage():
            for command_id, words in ((command.id, command.words), ("of another window", "none of your business")):
                turn = Turn(words=words, replies=(Reply(rounds=0), Reply(rounds=0)))
                tell(TurnProgress(command_id=command_id, number=command.number, turn=turn))
            tell(events.CommandDone(id=command.id))
        case Stop():
            return False
        case BackUpIdentity() | CreateSwarm() if kind == "mortal":
            sys.exit(7)
        case BackUpIdentity() | CreateSwarm() if kind == "silent":
            pass
        case ListSwarms():
            tell(KnownSwarms(swarms=(HERE, THERE), offers=(OFFER,)))
            tell(events.CommandDone(id=command.id))
        case _:
            tell(events.CommandDone(id=command.id))
    return True


def main(kind: str) -> int:
    match kind:
        case "dies":
            sys.stderr.write("out of memory, said the fake\n")
            return 7
        case "babbles":
            sys.stdout.write("hello, I am not JSON\n")
            sys.stdout.flush()
        case "old":
            tell(ready(protocol=-1))
        case "old and followed":
            tell(Snapshot(state=State(ready=ready(protocol=-1))))
        case "fails":
            tell(events.EngineFailed(title="No model here.", advice="Get one."))
            return 3
        case "fails slowly" | "stops slowly":
            tell(events.SettingsChanged(settings=Settings()))
            failed = events.EngineFailed(title="No room.", advice="Copy the report and start again.")
            tell(failed if kind == "fails slowly" else events.EngineStopped(round=3))
            sys.stdin.readline()
            return 3 if kind == "fails slowly" else 0
        case _:
            if kind == "followed":
                tell(events.EngineStopped(round=3))
            tell(events.Preparing(part="Warming up", done=0, parts=1))
            tell(events.SettingsChanged(settings=Settings()))
            tell(ready())
            tell(events.PhaseChanged(phase="contributing", round=3))
    if kind == "met":
        tell(peer("12D3KooWKnown"))
        tell(peer("12D3KooWUnknown"))
    for line in sys.stdin.buffer:
        if not answer(line, kind) and kind != "stubborn":
            tell(events.EngineStopped(round=3))
            return 0
    if kind == "stubborn":
        time.sleep(60)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
