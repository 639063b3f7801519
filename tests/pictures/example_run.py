"""Record the run that ships with Waggle: three engines with the starter and a seed on the loopback.

    python -m pictures.example_run FILE    (FILE is resources/example.jsonl; takes a few minutes)

The recording is the first engine's: its start and first rounds, then a snapshot late in the run, and the last rounds.
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from end_to_end.programs import Engine, Seed, running
from waggle.core.settings import LearningSettings
from waggle.protocol import commands, events, json_lines
from waggle.protocol.events_identity import DailyTotals
from waggle.protocol.events_swarms import KnownSwarms
from waggle.protocol.state import AnyEvent, Snapshot, State, apply

NODES = 3
FIRST_ROUNDS, LAST_ROUNDS, ROUNDS = 2, 10, 217
SECONDS = 1800.0
HELD_OUT = LearningSettings().held_out_questions
RECORDED = (  # nothing about this computer's rules, settings and folders
    events.Preparing, events.Ready, events.PhaseChanged, events.ReachChanged, events.PeerChanged, events.HeldOutMeasured,
    events.QuestionsDrawn, events.GroupsJudged, events.GroupsShared, events.GroupsGathered, events.PolicyUpdated,
    events.RoundCompleted, events.AhaHappened, events.CheckpointSaved, events.PeerGroupsArrived, events.TrafficMeasured,
    events.LoadMeasured, KnownSwarms, DailyTotals,
)  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    target = Path(arguments[0])
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        home = Path(folder)
        seed = stack.enter_context(running(Seed(home / "seed")))
        settings = (f'swarm.seeds=["{seed.address()}"]', "swarm.host=127.0.0.1", "computer.threads=1")
        recorded = stack.enter_context(running(Engine(home / "1", *settings, f"learning.held_out_questions={HELD_OUT}")))
        recorded.wait(events.Ready, 120)
        for number in range(1, NODES):
            stack.enter_context(running(Engine(home / str(number + 1), *settings)))
        recorded.command(commands.ListSwarms)
        recorded.wait_round(ROUNDS - 1, SECONDS)
        recorded.command(commands.QueryDays)
        played = recorded.all_events
    lines = [json_lines.line(event) for event in excerpt([event for event in played if isinstance(event, RECORDED)])]
    target.write_bytes(b"".join(lines))
    sys.stdout.write(f"{target}: {len(lines)} events, {target.stat().st_size / 1e3:.0f} kB\n")
    return 0


def excerpt(played: Sequence[AnyEvent]) -> Iterator[AnyEvent]:
    """The events of the first rounds, a snapshot of the state LAST_ROUNDS before the end, the events after it, and the days."""
    (days,) = (event for event in played if isinstance(event, DailyTotals))
    first, cut, end = (
        _place_of_round(played, number - 1) for number in (FIRST_ROUNDS, days.all.rounds - LAST_ROUNDS, days.all.rounds)
    )
    yield from played[:first]
    yield from (event for event in played[first:] if isinstance(event, KnownSwarms))
    state = State()
    for event in played[:cut]:
        state = apply(state, event)
    yield Snapshot(state=state, seq=state.seq, at=state.at)
    for event in played[cut:end]:
        state = apply(state, event)
        yield event
    pulled = sum(peer.groups_pulled for peer in state.peers.values())  # the engine counts from files that are a little older
    yield msgspec.structs.replace(days, groups_pulled=pulled)


def _place_of_round(played: Sequence[AnyEvent], number: int) -> int:
    """The place after the event that completes a round."""
    return 1 + next(
        place for place, event in enumerate(played) if isinstance(event, events.RoundCompleted) and event.summary.round == number
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
