"""An engine goes to First steps while it starts, as at a window's first start, stays there, and comes back to First light."""

from pathlib import Path

from end_to_end.programs import Engine, running
from end_to_end.test_invite import go_there
from waggle.core import paths
from waggle.network import joined_swarms
from waggle.protocol import commands, events
from waggle.protocol.events_swarms import StartedAgain
from waggle.tasks.shipped_swarms import first_steps, first_swarm

SETTINGS = ("swarm.host=127.0.0.1",)
LIGHT, STEPS = first_swarm().digest.hex(), first_steps().digest.hex()


def test_first_steps_needs_no_invite_and_no_file_and_is_left_for_first_light(tmp_path: Path) -> None:
    home = paths.Home(tmp_path / "home")
    with running(Engine(home.root, *SETTINGS)) as engine:
        engine.wait(events.Preparing, 120)
        assert isinstance(engine.command(commands.ChooseSwarm, charter=STEPS), events.CommandDone)
        engine.wait(StartedAgain, 60, lambda event: event.reason == "Going to First steps.")
        engine.wait(events.Ready, 120, lambda event: event.charter == STEPS)
        engine.wait(events.RoundCompleted, 60)
        assert engine.end() == 0
    assert not list(home.charters.iterdir())
    with running(Engine(home.root, *SETTINGS)) as engine:
        ready = engine.wait(events.Ready, 120)
        assert (ready.swarm, ready.round >= 1) == ("First steps", True)
        assert [(each.dataset, each.levels) for each in ready.specialties] == [
            (each.dataset, each.levels) for each in first_steps().specialties
        ]
        assert ready.better_swarm is None
        back = go_there(engine, LIGHT)
        assert (back.swarm, back.better_swarm) == ("First light", None), "the starter learns there"
        assert engine.end() == 0
    assert joined_swarms.read(home.swarms).active == ""
