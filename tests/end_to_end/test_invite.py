"""A user creates a swarm and invites another by link; both join it with their training, and share."""

import subprocess

from end_to_end.programs import WAGGLE, Engine, running
from waggle.core import paths
from waggle.network import joined_swarms
from waggle.protocol import commands, events
from waggle.protocol.events_swarms import InviteRead, InviteWritten, KnownSwarms, StartedAgain, SwarmCreated

SETTINGS = ("swarm.host=127.0.0.1",)
CHOSEN = (("base_conversion", "easy"), ("fraction_simplification", "easy"))


def test_one_creates_and_invites_the_other_joins_by_link_and_both_share(tmp_path):
    with running(Engine(tmp_path / "a", *SETTINGS)) as first, running(Engine(tmp_path / "b", *SETTINGS)) as second:
        second.wait_round(0, 120)
        first.wait(events.Ready, 120)
        first.command(commands.CreateSwarm, 60, name="Two laptops", specialties=CHOSEN)
        swarm = first.wait(SwarmCreated).swarm
        assert (swarm.name, swarm.created, swarm.active) == ("Two laptops", True, False)
        go_there(first, swarm.charter)
        first.command(commands.WriteInvite)
        link = first.wait(InviteWritten).link

        second.command(commands.ReadInvite, link=link)
        looked = second.wait(InviteRead)
        assert (looked.swarm.name, looked.answered, looked.swarm.known) == ("Two laptops", True, False)
        assert all(specialty.sample for specialty in looked.swarm.specialties), "the invite shows sample questions"
        assert not any(isinstance(event, StartedAgain) for event in second.all_events), "reading an invite joins no swarm"
        ready = go_there(second, swarm.charter)
        assert ready.round >= 1, "the training came along"
        assert link.encode() not in recorded(tmp_path), "an invite may contain a key, so no record has it"

        for engine in (first, second):
            start = index_of(engine, StartedAgain)
            engine.wait(events.PeerGroupsArrived, 60, start=start)
            done = engine.wait(events.RoundCompleted, 60, lambda event: event.summary.external > 0, start=start).summary.round
            engine.wait(events.QuestionsDrawn, 60, lambda event, done=done: event.round > done, start=start)
        for name in "ab":  # rounds were played there, so a later choice can return to it
            assert joined_swarms.read(paths.Home(tmp_path / name).swarms).before == swarm.charter
        second.command(commands.ListSwarms)
        listed = [event for event in second.all_events if isinstance(event, KnownSwarms)][-1].swarms
        assert [(entry.name, entry.active) for entry in listed] == [
            ("First light", False),
            ("First steps", False),
            ("Two laptops", True),
        ]
        assert second.end() == first.end() == 0


def test_an_invite_to_the_swarm_in_which_everybody_begins_leads_to_who_wrote_it(tmp_path):
    """By the command `waggle join`: both are in First light before, and alone there."""
    guest = tmp_path / "guest"
    with running(Engine(tmp_path / "host", *SETTINGS)) as host:
        begun = host.wait(events.Ready, 120)
        host.command(commands.WriteInvite)
        link = host.wait(InviteWritten).link
        for answer in ("The next engine joins First light.", "It is chosen already."):
            command = [*WAGGLE, "join", "--yes", link, "--home", str(guest)]
            assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.startswith(answer)
        with running(Engine(guest, *SETTINGS)) as other:
            ready = other.wait(events.Ready, 120)
            assert ready.charter == begun.charter
            host.wait(events.PeerChanged, 120, lambda event: event.peer.id == ready.node and event.peer.groups_pulled)
            assert other.end() == 0
        assert host.end() == 0


def go_there(engine: Engine, charter: str) -> events.Ready:
    """Choose a swarm and wait until the engine has joined it."""
    start = len(engine.lines)
    assert isinstance(engine.command(commands.ChooseSwarm, charter=charter), events.CommandDone)
    ready = engine.wait(events.Ready, 120, lambda event: event.charter == charter, start)
    engine.wait(events.PhaseChanged, 30, lambda event: event.phase == "contributing", start)
    return ready


def index_of(engine: Engine, kind: type) -> int:
    """The position of the last event of a kind among the lines."""
    return max(i for i, event in enumerate(engine.all_events) if isinstance(event, kind))


def recorded(folder) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("*/events/*"))
