"""Goes to a swarm: the running engine restarts there, or the next engine starts there."""

from waggle.cli.preferences.changing import change_settings
from waggle.cli.preferences.current import current_settings
from waggle.cli.shared.engine import engine_runs, status
from waggle.cli.shared.waiting import wait_for_swarm
from waggle.cli.swarms.obeying import Obey
from waggle.core import paths
from waggle.protocol import commands
from waggle.protocol.events_swarms import KnownSwarms


def choose(home: paths.Home, obey: Obey, charter: str, member_name: str | None) -> float | None:
    """Choose a swarm; `wait` takes the result. Raises EngineError and SwarmError."""
    since = status(home).at if engine_runs(home) else None
    stays = obey(commands.ChooseSwarm(id=commands.new_id(), charter=charter, member_name=member_name))
    return None if any(isinstance(event, KnownSwarms) for event in stays) else since


def wait(home: paths.Home, charter: str, since: float | None) -> None:
    """Wait until the engine, if one restarts, is in the swarm, and end solo training. Raises EngineError if it came back."""
    if since is not None:
        wait_for_swarm(home, charter, since)
    if current_settings(home).swarm.solo:  # only now: an engine that goes back must not go back to others
        change_settings(home, {"swarm.solo": None}, runs=engine_runs(home))
